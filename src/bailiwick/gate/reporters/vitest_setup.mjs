// Loaded by vitest before each file of tests: when they are done, `expect` still has to fail where it must.
const { expect, afterAll, chai } = await import(/* @vite-ignore */ process.env.BAILIWICK_VITEST);

const must = {
  toBe: () => expect(1).toBe(2),
  'not.toBe': () => expect(1).not.toBe(1),
  toEqual: () => expect({ a: [1] }).toEqual({ a: [2] }),
  toStrictEqual: () => expect([1]).toStrictEqual([2]),
  toMatch: () => expect('a').toMatch('b'),
  toContain: () => expect([1]).toContain(2),
  toThrow: () => expect(() => {}).toThrow(),
  toBeTruthy: () => expect(false).toBeTruthy(),
  toBeNull: () => expect(1).toBeNull(),
  'to.equal': () => expect(1).to.equal(2),
  'assert.equal': () => chai.assert.equal(1, 2),
};
const first = expect;

afterAll(() => {
  const found = globalThis.expect && globalThis.expect !== first ? ['the global expect'] : [];
  for (const [name, attempt] of Object.entries(must)) {
    try {
      attempt();
      found.push(`expect().${name}`);
    } catch {
      // as it has to be
    }
  }
  if (found.length) throw new Error(`the code under test exchanged ${found.join(', ')}`);
});

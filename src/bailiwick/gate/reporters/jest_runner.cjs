'use strict';
// Around jest's own runner of one test file: what judges the tests has to be the same, and to fail where it must, when
// they are done.
const path = require('node:path');
const { take } = require('./start.cjs');
const send = take('runner');

module.exports = async function run(globalConfig, config, environment, runtime, testPath, ...rest) {
  const places = [config.rootDir, process.cwd(), path.dirname(process.argv[1] ?? '.')];
  const paths = [...places, ...places.flatMap((place) => resolved('jest', place)), ...places.flatMap((place) => resolved('jest-cli', place))];
  const loaded = require(require.resolve('jest-circus/runner', { paths }));
  const real = loaded.default ?? loaded;
  const inner = environment.handleTestEvent;
  let globals;
  environment.handleTestEvent = async function handleTestEvent(event, state) {
    if (event.name === 'setup') globals = { ...event.runtimeGlobals };
    if (event.name === 'run_finish' && globals) send({ t: 'judges', changed: changes(globals, environment.global, config) });
    if (inner) await inner.call(environment, event, state);
  };
  return real(globalConfig, config, environment, runtime, testPath, ...rest);
};

function resolved(name, place) {
  try {
    return [path.dirname(require.resolve(name, { paths: [place] }))];
  } catch {
    return [];
  }
}

function changes(globals, global, config) {
  const found = [];
  if (config.injectGlobals !== false) {
    for (const name of ['expect', 'test', 'it', 'describe', 'beforeEach', 'afterEach']) {
      if (global[name] !== globals[name]) found.push(`jest ${name}`);
    }
  }
  const { expect } = globals;
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
  };
  for (const [name, attempt] of Object.entries(must)) {
    try {
      attempt();
      found.push(`jest expect().${name}`);
    } catch {
      // as it has to be
    }
  }
  return found;
}

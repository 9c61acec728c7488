'use strict';
// A reporter of mocha: one record for each test as it ends, then mocha's own counts. Readable output is that of `spec`.
const path = require('node:path');
const { take, relative, textOf } = require('./start.cjs');
const send = take('reporter');
const mochaFile = require.resolve('mocha', { paths: [process.cwd(), path.dirname(process.argv[1] ?? '.')] });
const Mocha = require(mochaFile);
const before = [];
for (const name of ['Runner', 'Test', 'Runnable', 'Suite', 'Hook', 'Context']) {
  const object = Mocha[name]?.prototype;
  for (const key of object ? Object.getOwnPropertyNames(object) : []) {
    const value = Object.getOwnPropertyDescriptor(object, key).value;
    if (typeof value === 'function') before.push([`mocha ${name}.prototype.${key}`, object, key, value]);
  }
}

class Reporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const count = { tests: 0, pass: 0, fail: 0, skipped: 0 };
    const tell = (test, outcome, error) => {
      if (test.type !== 'hook') count.tests += 1;
      const names = typeof test.titlePath === 'function' ? test.titlePath() : [test.fullTitle()];
      send({ t: 'test', file: relative(test.file ?? test.parent?.file), names, outcome, suite: test.type === 'hook', text: error ? textOf(error) : '', ms: test.duration ?? 0 });
    };
    runner.on('pass', (test) => tell(test, 'passed'));
    runner.on('pending', (test) => tell(test, 'skipped'));
    runner.on('fail', (test, error) => tell(test, 'failed', error));
    runner.on('end', () => {
      const stats = runner.stats ?? {};
      Object.assign(count, { pass: stats.passes, fail: stats.failures, skipped: stats.pending });
      this.counted = count;
    });
  }

  done(failures, finish) {
    canaries().then((changed) => {
      for (const [name, object, key, value] of before) {
        if (Object.getOwnPropertyDescriptor(object, key)?.value !== value) changed.push(name);
      }
      send({ t: 'judges', changed });
      send({ t: 'end', counts: this.counted ?? {}, failures });
      finish(failures);
    });
  }
}

// Assertion libraries that the tests use have to fail where they must.
async function canaries() {
  const found = [];
  for (const library of ['chai', 'expect', 'should']) {
    let file;
    try {
      file = require.resolve(library, { paths: [process.cwd()] });
    } catch {
      continue;
    }
    const inUse = Object.keys(require.cache).includes(file) || library === 'chai';
    const loaded = inUse ? await import(file).catch(() => undefined) : undefined;
    const own = loaded?.default ?? loaded;
    if (library === 'chai' && loaded) {
      const { expect, assert } = loaded.expect ? loaded : own;
      check(found, 'chai expect().to.equal', () => expect(1).to.equal(2));
      check(found, 'chai expect().to.eql', () => expect([1]).to.eql([2]));
      check(found, 'chai expect().to.be.true', () => expect(false).to.be.true);
      check(found, 'chai assert.equal', () => assert.equal(1, 2));
      check(found, 'chai assert.strictEqual', () => assert.strictEqual(1, 2));
      check(found, 'chai assert.deepEqual', () => assert.deepEqual([1], [2]));
    } else if (library === 'expect' && own) {
      const expect = own.expect ?? own;
      check(found, 'expect().toBe', () => expect(1).toBe(2));
      check(found, 'expect().toEqual', () => expect([1]).toEqual([2]));
    }
  }
  return found;
}

function check(found, name, attempt) {
  try {
    attempt();
  } catch {
    return;
  }
  found.push(name);
}

module.exports = Reporter;

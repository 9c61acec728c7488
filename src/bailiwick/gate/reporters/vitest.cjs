'use strict';
// A reporter of vitest: one record for each test, then what vitest itself says about the run.
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { take, relative, textOf } = require('./start.cjs');
const send = take('reporter');
const OUTCOMES = { passed: 'passed', pass: 'passed', failed: 'failed', fail: 'failed' };

module.exports = class Reporter {
  onInit(vitest) {
    const own = require.resolve('vitest/package.json', { paths: [process.cwd()] });
    process.env.BAILIWICK_VITEST = pathToFileURL(path.join(path.dirname(own), 'dist', 'index.js')).href;
    for (const project of vitest.projects ?? [vitest]) {
      project.config?.setupFiles?.push(path.join(__dirname, 'vitest_setup.mjs'));
    }
  }

  onFinished(files = [], errors = []) {
    if (this.told) return;
    this.told = true;
    const counts = { tests: 0, pass: 0, fail: 0, skipped: 0 };
    for (const file of files) {
      const where = relative(file.filepath);
      const tests = [];
      walk(file, [], tests);
      for (const [task, names] of tests) {
        const outcome = task.type === 'suite' ? 'failed' : (OUTCOMES[task.result?.state] ?? 'skipped');
        if (task.type !== 'suite') {
          counts.tests += 1;
          counts[outcome === 'passed' ? 'pass' : outcome === 'failed' ? 'fail' : 'skipped'] += 1;
        }
        const text = (task.result?.errors ?? []).map(textOf).join('\n').slice(0, 4000);
        send({ t: 'test', file: where, names, outcome, suite: task.type === 'suite', text, ms: task.result?.duration ?? 0 });
      }
      const broken = file.result?.state === 'fail' && (file.result.errors?.length || !tests.length);
      if (broken) send({ t: 'unloaded', file: where, text: (file.result.errors ?? []).map(textOf).join('\n').slice(0, 4000) });
    }
    for (const error of errors) send({ t: 'unhandled', text: textOf(error) });
    send({ t: 'end', counts });
  }

  onTestRunEnd(modules, errors) {
    this.onFinished(modules.map((one) => one.task), errors);
  }
};

function walk(task, names, found) {
  for (const one of task.tasks ?? []) {
    if (one.type === 'suite') {
      if (one.result?.state === 'fail' && one.result.errors?.length) found.push([one, [...names, one.name]]);
      walk(one, [...names, one.name], found);
    } else {
      found.push([one, [...names, one.name]]);
    }
  }
}

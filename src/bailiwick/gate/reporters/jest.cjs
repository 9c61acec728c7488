'use strict';
// A reporter of jest: one record for each test, then jest's own counts.
const { take, relative, textOf } = require('./start.cjs');
const send = take('reporter');
const OUTCOMES = { passed: 'passed', failed: 'failed', pending: 'skipped', skipped: 'skipped', todo: 'skipped', disabled: 'skipped' };

module.exports = class Reporter {
  onTestResult(test, result) {
    const file = relative(result.testFilePath ?? test.path);
    if (result.testExecError || (result.failureMessage && !result.testResults.length)) {
      send({ t: 'unloaded', file, text: textOf(result.testExecError ?? result.failureMessage) });
    }
    for (const one of result.testResults) {
      const names = [...one.ancestorTitles, one.title];
      const text = (one.failureMessages ?? []).join('\n').slice(0, 4000);
      send({ t: 'test', file, names, outcome: OUTCOMES[one.status] ?? 'skipped', text, ms: one.duration ?? 0 });
    }
  }

  onRunComplete(_, results) {
    send({
      t: 'end',
      counts: {
        tests: results.numTotalTests, pass: results.numPassedTests, fail: results.numFailedTests,
        skipped: results.numPendingTests + results.numTodoTests,
      },
      broken: results.numRuntimeErrorTestSuites,
      ok: results.success,
    });
  }
};

'use strict';
// A reporter of node:test: one record for each test, then the runner's own counts.
const { take, relative, textOf } = require('./start.cjs');
const send = take('reporter');
const KINDS = ['tests', 'pass', 'fail', 'cancelled', 'skipped', 'todo'];

module.exports = async function* report(source) {
  const open = new Map();
  const counts = {};
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      const names = open.get(data.file) ?? [];
      open.set(data.file, [...names.slice(0, data.nesting), data.name]);
    } else if (type === 'test:pass' || type === 'test:fail') {
      tell(type, data, [...(open.get(data.file) ?? []).slice(0, data.nesting), data.name]);
    } else if (type === 'test:diagnostic' && data.nesting === 0 && !data.file) {
      const [kind, number] = String(data.message).split(' ');
      if (KINDS.includes(kind)) counts[kind] = Number(number);
    }
  }
  send({ t: 'end', counts });
};

function tell(type, data, names) {
  const failed = type === 'test:fail';
  const error = data.details?.error;
  const file = relative(data.file);
  if (data.nesting === 0 && data.file && relative(data.name) === file && data.name.includes('/')) {
    if (failed && error?.failureType !== 'subtestsFailed') send({ t: 'unloaded', file, text: textOf(error) });
    else if (!failed) send({ t: 'empty', file });
    return;
  }
  if (data.details?.type === 'suite' && (!failed || error?.failureType === 'subtestsFailed')) return;
  const left = (data.skip !== undefined && data.skip !== false) || (data.todo !== undefined && data.todo !== false);
  const outcome = left ? 'skipped' : failed ? 'failed' : 'passed';
  send({ t: 'test', file, names, outcome, suite: data.details?.type === 'suite', text: failed ? textOf(error) : '', ms: data.details?.duration_ms ?? 0 });
}

'use strict';
// Loaded by Node before anything else (--require). In the runner's own process it reads the key of this run from
// standard input, opens the way to the gate, and gives every child of the runner a key and a handle of its own. In each
// process that tests may run in, it remembers what judges them (assert, the test functions, built-in objects) and says
// at the end what was exchanged. In any other process it does nothing.
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const crypto = require('node:crypto');
const childProcess = require('node:child_process');
const Module = require('node:module');

const MARK = 'BAILIWICK_GATE';
const PART = 3000; // a line stays below what a pipe takes in one piece
const apply = Reflect.apply;
const stringify = JSON.stringify;
const { writeSync, readFileSync, writeFileSync, unlinkSync } = fs;
const { createHmac, randomBytes } = crypto;
const { update, digest } = (() => {
  const probe = createHmac('sha256', 'k');
  return { update: probe.update, digest: probe.digest };
})();

function makeChannel(id, handle, key) {
  let next = 0;
  const seal = (text) => {
    const mac = createHmac('sha256', key);
    apply(update, mac, [text]);
    return apply(digest, mac, ['hex']);
  };
  const write = (line) => {
    let data = Buffer.from(line, 'latin1');
    while (data.length) {
      try {
        data = data.subarray(writeSync(handle, data));
      } catch (error) {
        if (error.code !== 'EAGAIN') return;
      }
    }
  };
  return (record) => {
    const text = stringify(record).replace(/[\u0080-\uffff]/g, (sign) => '\\u' + sign.charCodeAt(0).toString(16).padStart(4, '0'));
    for (let at = 0; at < text.length; at += PART) {
      const part = text.slice(at, at + PART);
      const body = `${id} ${next++} ${at + PART >= text.length ? 1 : 0} ${part}`;
      write(`${seal(body)} ${body}\n`);
    }
  };
}

function judges() {
  const assert = require('node:assert');
  const listed = [
    ['assert', assert], ['assert.strict', assert.strict], ['util', require('node:util'), ['isDeepStrictEqual', 'inspect']],
    ['node:test', require('node:test')], ['process', process, ['exit', 'reallyExit', 'abort', 'emit', 'on', 'kill']],
    ['Module', Module, ['_load', '_resolveFilename']], ['Module.prototype', Module.prototype, ['require', '_compile']],
    ['JSON', JSON], ['Reflect', Reflect], ['Math', Math, ['abs', 'floor', 'max', 'min', 'round']], ['Object', Object], ['Array', Array],
    ['Number', Number], ['Promise', Promise], ['global', globalThis, ['Object', 'Array', 'Promise', 'Error', 'JSON', 'Proxy', 'Symbol']],
  ];
  for (const type of [Object, Array, String, Number, Function, RegExp, Map, Set, Promise, Error]) {
    listed.push([`${type.name}.prototype`, type.prototype]);
  }
  return listed.map(([name, object, only]) => ({ name, object, was: functionsOf(object, only) }));
}

function functionsOf(object, only) {
  const found = new Map();
  for (const key of only ?? Object.getOwnPropertyNames(object)) {
    const described = Object.getOwnPropertyDescriptor(object, key);
    const value = described && ('value' in described ? described.value : described.get?.ours ? described.get.call(object) : undefined);
    if (typeof value === 'function') found.set(key, value);
  }
  return found;
}

// An assertion that is exchanged only for a moment is noticed too.
function watchAssert(note) {
  const assert = require('node:assert');
  for (const [name, object] of [['assert', assert], ['assert.strict', assert.strict]]) {
    for (const key of Object.keys(object)) {
      let value = object[key];
      if (typeof value !== 'function' || key === 'strict' || key === 'AssertionError') continue;
      const get = () => value;
      get.ours = true;
      const set = (other) => {
        if (other !== value) note(`${name}.${key}`);
        value = other;
      };
      Object.defineProperty(object, key, { get, set, enumerable: true, configurable: true });
    }
  }
}

// Which tests node:test really ran in this process, told by node:test itself.
function witness(ran) {
  const { afterEach } = require('node:test');
  afterEach((context) => {
    if (typeof context?.fullName === 'string') ran.push(context.fullName);
  });
}

function watch(send, isChild, witnessed) {
  const changed = new Set();
  const ran = [];
  if (witnessed) witness(ran);
  watchAssert((name) => changed.add(name));
  const before = judges();
  const compare = () => {
    for (const { name, object, was } of before) {
      for (const [key, value] of was) {
        const described = Object.getOwnPropertyDescriptor(object, key);
        const now = described && ('value' in described ? described.value : described.get?.ours ? apply(described.get, object, []) : undefined);
        if (now !== value) changed.add(`${name}.${key}`);
      }
    }
    send({ t: isChild ? 'bye' : 'judges', changed: [...changed].slice(0, 50), file: exports.relative(process.argv[1]), ran });
  };
  process.on('exit', compare);
}

// Children of the runner that are Node too get the handle and a key of their own, handed over in a file they remove.
function adopt(send, handle, witnessed, inner) {
  const real = childProcess.ChildProcess.prototype.spawn;
  let born = 0;
  childProcess.ChildProcess.prototype.spawn = function spawn(options) {
    if (options.file === process.execPath && Array.isArray(options.envPairs)) {
      const id = `c${++born}`;
      const key = randomBytes(32).toString('hex');
      const file = path.join(os.tmpdir(), `.${randomBytes(12).toString('hex')}`);
      try {
        writeFileSync(file, key, { mode: 0o600, flag: 'wx' });
      } catch {
        return apply(real, this, [options]);
      }
      const given = options.stdio ?? 'pipe';
      const stdio = Array.isArray(given) ? [...given] : [given, given, given];
      while (stdio.length < 3) stdio.push('pipe');
      const kept = options.envPairs.filter((pair) => !pair.startsWith('NODE_OPTIONS='));
      const flags = (options.envPairs.find((pair) => pair.startsWith('NODE_OPTIONS=')) ?? '').slice('NODE_OPTIONS='.length);
      const envPairs = [
        ...kept, `NODE_OPTIONS=--require=${stringify(__filename)} ${flags}`.trim(),
        `${MARK}=${stringify({ id, handle: stdio.length, file, flags, witnessed, takers: inner })}`,
      ];
      send({ t: 'child', id, key });
      return apply(real, this, [{ ...options, stdio: [...stdio, handle], envPairs }]);
    }
    return apply(real, this, [options]);
  };
}

function start() {
  const said = process.env[MARK];
  delete process.env[MARK];
  if (!said) return undefined;
  const given = JSON.parse(said);
  for (const name of given.takers ?? []) takers.add(name);
  if (given.id) {
    const key = readFileSync(given.file, 'utf8');
    unlinkSync(given.file);
    if (given.flags) process.env.NODE_OPTIONS = given.flags;
    else delete process.env.NODE_OPTIONS;
    const send = makeChannel(given.id, given.handle, Buffer.from(key, 'hex'));
    send({ t: 'hello', file: exports.relative(process.argv[1]) });
    watch(send, true, given.witnessed);
    return send;
  }
  const { key } = JSON.parse(readFileSync(0, 'utf8'));
  const send = makeChannel('m', given.handle, Buffer.from(key, 'hex'));
  send({ t: 'start', node: process.version });
  if (given.adopt) adopt(send, given.handle, given.witnessed, given.inner);
  watch(send, false, given.witnessed && !given.adopt);
  return send;
}

exports.relative = (file) => {
  if (!file) return '';
  let real = String(file).replace(/^file:\/\//, '');
  let top = process.cwd();
  try {
    real = fs.realpathSync(real);
    top = fs.realpathSync(top);
  } catch {
    // as it is
  }
  return path.relative(top, real).split(path.sep).join('/');
};
exports.textOf = (error) => {
  const cause = error?.cause ?? error;
  return String(cause?.stack ?? cause?.message ?? cause ?? '').slice(0, 4000);
};

const takers = new Set();
const channel = start();
// Reporter and runner take it once each, before any code under test runs; nobody after them gets anything.
exports.take = (name) => (takers.delete(name) && channel) || (() => {});

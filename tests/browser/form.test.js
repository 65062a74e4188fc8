// @ts-check
// From shapes to forms and back: what is sent, what is left out, what is marked.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect, fieldAt, plan } from '../../gateway/studio/form.js';
import { equal, number, parse } from '../../gateway/studio/json.js';
import { answered, answerOf, givenBy, questionsOf } from '../../gateway/studio/questions.js';

/**
 * What a form sends when only `typed` is filled in; the rest stands as it was drawn.
 * @param {any} shape
 * @param {Record<string, any>} [typed] by property, `''` for a shape that is no object
 */
function send(shape, typed = {}) {
  const form = plan(shape);
  const entries = form.fields.map((field) => ({ ...field.start, ...(field.name in typed ? typed[field.name] : {}) }));
  const { data, errors } = collect(form, entries);
  return errors === null ? JSON.stringify(data) : errors.map(({ field, rule }) => `${form.fields[field]?.name}: ${rule}`).join(', ');
}
const text = (/** @type {string} */ value) => ({ text: value });
const object = (/** @type {any} */ properties) => ({ type: 'object', properties });

test('numbers are whole texts, turned by the shape', () => {
  const shape = { ...object({ count: { type: 'integer', minimum: 1 }, price: { type: 'number' }, note: { type: 'string' } }), required: ['count'] };
  /** @type {[any, string][]} */
  const rows = [
    [{ count: text('5') }, '{"count":5}'],
    [{ count: text('1.0') }, '{"count":1}'],
    [{ count: text('50abc') }, 'count: type'],
    [{ count: text(' 7 ') }, '{"count":7}'],
    [{ count: text('5'), price: text('19,99') }, 'price: type'],
    [{ count: text('5'), price: text('') }, '{"count":5}'],
    [{ count: text('1e3') }, '{"count":1000}'],
    [{ count: text('') }, 'count: required'],
    [{ count: text('0') }, 'count: minimum'],
    [{ count: text('-0') }, 'count: minimum'],
    [{ count: text('1.5') }, 'count: type'],
    [{ count: text('0x10') }, 'count: type'],
    [{ count: text('５') }, 'count: type'],
    [{ count: text('+5') }, 'count: type'],
    [{ count: text('05') }, 'count: type'],
    [{ count: text('Infinity') }, 'count: type'],
    [{ count: text('true') }, 'count: type'],
    [{ count: text('5'), note: text(' x ') }, '{"count":5,"note":" x "}'],
    [{ count: text('x'), price: text('y') }, 'count: type, price: type'],
  ];
  for (const [typed, wanted] of rows) assert.equal(send(shape, typed), wanted, JSON.stringify(typed));
});

test('a form never writes by itself', () => {
  assert.equal(send(object({ why: { title: 'Unknown', oneOf: [{ const: null, title: 'no reason' }] } })), '{}');
  const person = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
  assert.equal(send(object({ who: { oneOf: [person, { ...person, required: ['team'] }] } })), '{}');
  assert.equal(send(object({ note: { type: 'string' } }), { note: text('') }), '{}');
  assert.equal(send(object({ n: { type: 'number' } }), { n: text('') }), '{}');
  assert.equal(send(object({ ok: { type: 'boolean' } })), '{}');
  assert.equal(send(object({ on: { type: 'string', format: 'date' } })), '{}');
  assert.equal(send({ type: 'boolean' }), ': required');
  assert.equal(send({ type: 'string', enum: ['approve', 'reject'] }), ': required');
  assert.equal(send({ type: 'string', enum: ['approve', 'reject'] }, { '': { pick: 0 } }), '"approve"');
  assert.equal(send({ type: 'boolean' }, { '': { pick: 1 } }), 'false');
  assert.equal(send({ enum: [null, 0, false, ''] }, { '': { pick: 2 } }), 'false');
});

test('a default is shown and sent, and one that does not fit is not', () => {
  const city = (/** @type {any} */ value) => ({ ...object({ city: { type: 'string', default: value } }), required: ['city'] });
  assert.equal(send(city('Oslo')), '{"city":"Oslo"}');
  assert.equal(plan(city('Oslo')).fields[0]?.filled, true);
  assert.equal(send(city('Oslo'), { city: text('Rome') }), '{"city":"Rome"}');
  assert.equal(send(city(5)), 'city: required');
  assert.equal(send(object({ n: { type: 'integer', default: 2 }, ok: { type: 'boolean', default: false }, e: { enum: ['a', 'b'], default: 'b' } })), '{"n":2,"ok":false,"e":"b"}');
});

test('what cannot be drawn is JSON, and what is optional may stay empty', () => {
  const deep = { type: 'array', items: { type: 'array', items: { type: 'number' } } };
  const shape = { ...object({ m: deep }), required: ['m'] };
  assert.equal(plan(shape).fields[0]?.widget, 'json');
  assert.equal(send(shape), 'm: required');
  assert.equal(send(shape, { m: text('[[1],') }), 'm: json');
  assert.equal(send(shape, { m: text('[[1], [2]]') }), '{"m":[[1],[2]]}');
  assert.equal(send(object({ m: deep })), '{}');
  for (const whole of [true, {}, { type: 'array' }, { allOf: [object({ a: {} })] }, { ...object({ a: {} }), additionalProperties: false, allOf: [{}] }, { ...object({ a: {} }), required: ['b'] }]) {
    const form = plan(/** @type {any} */ (whole));
    assert.deepEqual([form.object, form.fields.length, form.fields[0]?.widget], [false, 1, 'json'], JSON.stringify(whole));
  }
});

test('null is given only on purpose', () => {
  for (const note of [{ type: ['string', 'null'] }, { anyOf: [{ type: 'string' }, { type: 'null' }] }]) {
    const shape = { ...object({ note }), required: ['note'] };
    assert.equal(send(shape), 'note: required');
    assert.equal(send(shape, { note: { none: true } }), '{"note":null}');
    assert.equal(send(shape, { note: text('null') }), '{"note":"null"}');
  }
});

test('bounds and formats are checked, and never a pattern', () => {
  const check = (/** @type {any} */ shape, /** @type {string} */ typed) => send(shape, { '': text(typed) });
  assert.equal(check({ type: 'string', minLength: 2 }, '🍣'), ': minLength', 'characters, not units');
  assert.equal(check({ type: 'string', maxLength: 1 }, '🍣'), '"🍣"');
  assert.equal(check({ type: 'number', exclusiveMinimum: 0 }, '0'), ': exclusiveMinimum');
  assert.equal(check({ type: 'number', minimum: 0, exclusiveMinimum: true }, '0'), ': minimum', 'draft-04');
  assert.equal(check({ type: 'number', maximum: 3 }, '3.5'), ': maximum');
  assert.equal(check({ type: 'string', format: 'email' }, 'ada'), ': format');
  assert.equal(check({ type: 'string', format: 'email' }, 'ada@example.org'), '"ada@example.org"');
  assert.equal(check({ type: 'string', format: 'phone' }, 'anything'), '"anything"', 'another format is a note');
  assert.equal(check({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(40)}!`), `"${'a'.repeat(40)}!"`);
  assert.equal(check({ type: 'number', multipleOf: 0.01 }, '1.005'), '1.005', 'the gateway decides');
  assert.equal(send({ type: 'string', format: 'date' }, { '': { broken: true } }), ': format', 'half a date is not nothing');
});

test('references in the shape are followed, and one that never ends is not', () => {
  const shape = { ...object({ size: { $ref: '#/$defs/size' } }), $defs: { size: { enum: ['S', 'M'] } } };
  assert.equal(send(shape, { size: { pick: 1 } }), '{"size":"M"}');
  const loop = { ...object({ a: { $ref: '#/$defs/x' } }), $defs: { x: { $ref: '#/$defs/x' } } };
  assert.equal(plan(loop).fields[0]?.widget, 'json');
});

test('names that mean something to JavaScript are names like others', () => {
  const shape = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}');
  assert.equal(send(shape, { ['__proto__']: text('a'), constructor: text('b') }), '{"__proto__":"a","constructor":"b"}');
  assert.equal(send(shape), '{}');
});

test('a pointer of the server finds its field', () => {
  const form = plan(/** @type {any} */ (object({ 'a/b': {}, 'm~n': {}, c: {} })));
  assert.deepEqual(['/a~1b', '/m~0n', '/c/0/x', '', '/zz'].map((one) => fieldAt(form, one)), [0, 1, 2, -1, -1]);
  assert.equal(fieldAt(plan({ type: 'integer' }), ''), 0);
});

test('numbers are equal by value and keep their digits or are not sent', () => {
  assert.ok(equal(parse('1.0'), 1) && equal(parse('[1e2]'), [100]) && !equal('1', 1) && !equal(null, undefined));
  assert.ok(equal({ a: 1, b: [2] }, { b: [2], a: 1 }) && !equal({ a: 1 }, { a: 1, b: 1 }) && !equal([], {}));
  for (const digits of ['12345678901234567890', '0.1234567890123456789', '1e999']) {
    const value = number(digits);
    assert.ok(value === undefined || JSON.stringify(value) === digits, digits);
  }
  assert.equal(number('0.1'), 0.1);
  assert.ok(Object.is(number('-0'), 0));
});

test('answers to several questions: choice, own words, both', () => {
  const [one, many] = questionsOf({ questions: [
    { id: 'p', question: 'How urgent?', choices: [{ label: 'Low', value: 'low' }, 'high'] },
    { question: 'Where?', multiple: true, choices: [{ label: 'A', value: 'a' }, { label: 'B', value: 'b' }] },
  ] });
  assert.ok(one && many);
  assert.equal(many.id, 'q2');
  assert.deepEqual(answerOf(one, { picked: ['low'], text: ' ' }), { questionId: 'p', answer: 'Low', choice: 'low' });
  assert.deepEqual(answerOf(one, { picked: [], text: 'by Friday' }), { questionId: 'p', answer: 'by Friday', custom: true });
  assert.deepEqual(answerOf(one, { picked: ['low'], text: 'but call' }), { questionId: 'p', answer: 'but call', choice: 'low', custom: true });
  assert.deepEqual(answerOf(many, { picked: ['b', 'a'], text: '' }), { questionId: 'q2', answer: 'A, B', choices: ['a', 'b'] });
  assert.deepEqual(answerOf(many, { picked: [], text: 'C' }), { questionId: 'q2', answer: 'C', custom: true });
  assert.equal(answerOf(one, { picked: [], text: '\n' }), null);
  for (const given of [{ picked: ['low'], text: '' }, { picked: ['low'], text: 'x' }, { picked: [], text: 'low' }]) {
    assert.deepEqual(givenBy(one, /** @type {any} */ (answerOf(one, given))), given, 'a draft comes back as it was given');
  }
  assert.equal(questionsOf({ question: 'Bare?', choices: ['x'] })[0]?.question, 'Bare?');
  assert.deepEqual(questionsOf(null), []);
  assert.deepEqual(answered(/** @type {any} */ ({ kind: 'ask_question', input: { questions: [{ id: 'p', question: 'How urgent?', choices: [{ label: 'Low', value: 'low' }] }] }, data: { answers: [{ questionId: 'p', answer: 'soon', choice: 'low', custom: true }] } })),
    [{ question: 'How urgent?', answer: 'Low, “soon”' }]);
});

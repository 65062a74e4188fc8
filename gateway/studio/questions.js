// @ts-check
// The questions of an `ask_question` ask and the answer objects of SPEC 3.2.

import { isObject, show } from './json.js';

/** @import { Ask, Json } from './wire.js' */

/**
 * @typedef {{ label: string, value: string, description: string }} Choice
 * @typedef {{ id: string, question: string, header: string, multiple: boolean, choices: readonly Choice[] }} Question
 * @typedef {{ picked: readonly string[], text: string }} Given what stands in one question's control
 */

/**
 * The questions of an ask, read as leniently as the worker takes them from a model: a bare
 * question for the list, texts for choices, `q1`, `q2` for ids that are missing.
 * @param {Json} input
 * @returns {readonly Question[]}
 */
export function questionsOf(input) {
  if (!isObject(input)) return [];
  const list = Array.isArray(input['questions']) ? input['questions'] : [input['questions'] ?? input];
  return list.filter(isObject).map((question, at) => ({
    id: typeof question['id'] === 'string' ? question['id'] : `q${at + 1}`,
    question: text(question['question']),
    header: text(question['header']),
    multiple: question['multiple'] === true,
    choices: (Array.isArray(question['choices']) ? question['choices'] : []).map(choiceOf),
  }));
}

/**
 * @param {Json} choice
 * @returns {Choice}
 */
function choiceOf(choice) {
  if (!isObject(choice)) return { label: show(choice), value: show(choice), description: '' };
  const value = text(choice['value'] ?? choice['label']);
  return { label: text(choice['label'] ?? value), value, description: text(choice['description']) };
}

/** @param {Json | undefined} value */
function text(value) {
  return value === undefined || value === null ? '' : show(value);
}

/**
 * The answer object for what a person gave, or `null` while nothing is given. The own text is
 * the person's: it stands beside a choice and never turns into one.
 * @param {Question} question
 * @param {Given} given
 * @returns {import('./wire.js').JsonObject | null}
 */
export function answerOf(question, given) {
  const picked = question.choices.filter((choice) => given.picked.includes(choice.value));
  const own = given.text.trim() !== '';
  if (picked.length === 0 && !own) return null;
  const values = picked.map((choice) => choice.value);
  return {
    questionId: question.id,
    answer: own ? given.text : picked.map((choice) => choice.label).join(', '),
    ...(values.length === 0 ? {} : question.multiple ? { choices: values } : { choice: values[0] ?? '' }),
    ...(own ? { custom: true } : {}),
  };
}

/**
 * What to show in a question's control for an answer object, as a draft carries it.
 * @param {Question} question
 * @param {Json | undefined} answer
 * @returns {Given}
 */
export function givenBy(question, answer) {
  if (!isObject(answer)) return { picked: [], text: '' };
  const wanted = Array.isArray(answer['choices']) ? answer['choices'] : [answer['choice']];
  const picked = question.choices.map((choice) => choice.value).filter((value) => wanted.includes(value));
  return { picked, text: answer['custom'] === true || picked.length === 0 ? text(answer['answer']) : '' };
}

/**
 * The lines that tell what was answered: one per question, or a single one without a question.
 * @param {Ask} ask a settled ask
 * @returns {readonly { question: string, answer: string }[]}
 */
export function answered(ask) {
  const { data } = ask;
  if (ask.kind === 'approval') return [];
  if (ask.kind !== 'ask_question' || !isObject(data) || !Array.isArray(data['answers'])) {
    if (isObject(data)) return Object.entries(data).map(([question, answer]) => ({ question, answer: show(answer) }));
    return data === undefined ? [] : [{ question: '', answer: show(data) }];
  }
  const questions = questionsOf(ask.input);
  return data['answers'].filter(isObject).map((answer) => {
    const question = questions.find((one) => one.id === answer['questionId']);
    const given = question ? givenBy(question, answer) : { picked: [], text: text(answer['answer']) };
    const labels = question?.choices.filter((one) => given.picked.includes(one.value)).map((one) => one.label) ?? [];
    const own = given.text === '' ? [] : [`“${given.text}”`];
    return {
      question: question?.header || question?.question || text(answer['questionId']),
      answer: [...labels, ...own].join(', '),
    };
  });
}

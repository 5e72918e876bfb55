import { expect, test } from 'vitest'
import { exitCodeOf, isFinished, type OutcomeHint } from '../../../src/core/events/outcome.ts'
import { describeOutcome, wordsForCallHint, wordsForHint } from '../../../src/tell/words/outcome.ts'
import { local } from '../../doors/screen/samples.ts'

const NIGHT = new Date(local(20, 23, 0)).toISOString()
const PLAN = '.codemachine/plan/tasks.json'

/** What a person in a shell is told, by hint. A hint that is missing does not compile. */
const WORDS: { [K in OutcomeHint['do']]: [Extract<OutcomeHint, { do: K }>, string] } = {
  'reword-goal': [
    { do: 'reword-goal' },
    'The model refused three rounds in a row. Reword the goal, or correct the files that it refers to; then codemachine resume continues.',
  ],
  'choose-model': [
    { do: 'choose-model' },
    'The model did not answer in the required form. Choose another model (--model), or reword the goal; then codemachine resume continues.',
  ],
  'check-codex': [
    { do: 'check-codex' },
    'Codex crashed three times in a row before it did anything. codemachine doctor checks codex; then codemachine resume continues.',
  ],
  'add-credit': [{ do: 'add-credit' }, 'Add credit, or use another account; then codemachine resume continues.'],
  'log-in': [{ do: 'log-in' }, 'Log in with codemachine login; then codemachine resume continues.'],
  'mend-access': [
    { do: 'mend-access' },
    'The server refused access three times in a row (HTTP 403). Check if the account, its rights, and a proxy or VPN let codex in; then codemachine resume continues.',
  ],
  'mend-codex-configuration': [
    { do: 'mend-codex-configuration' },
    'Fix the codex configuration (codemachine doctor checks it); then codemachine resume continues.',
  ],
  'mend-sandbox': [
    { do: 'mend-sandbox', mend: 'Remove the link.' },
    'Remove the link; then codemachine resume continues.',
  ],
  'mend-provider': [
    { do: 'mend-provider', provider: 'local' },
    'Fix that (to test local: codemachine doctor); then codemachine resume continues. To continue without local: codemachine resume --provider codex',
  ],
  'mend-cause': [
    { do: 'mend-cause', since: NIGHT },
    'It has failed since 2026-11-20 23:00, and the next try would come later than --max-wait allows. Fix the cause; then codemachine resume continues.',
  ],
  resume: [
    { do: 'resume', session: '20261120_1', at: NIGHT },
    'It would have to wait until 2026-11-20 23:00, longer than --max-wait allows; then codemachine resume continues.',
  ],
  'read-reviews': [
    { do: 'read-reviews', gatesPass: true },
    'Every required gate passes. Read the review (codemachine report). codemachine resume continues, with new reviews.',
  ],
  'mend-plan': [
    { do: 'mend-plan', files: [PLAN, 'a.md'], more: true },
    `Make the specification clearer, or correct ${PLAN}, a.md and others by hand; then codemachine resume continues.`,
  ],
  'add-tasks': [
    { do: 'add-tasks', file: PLAN },
    `Add tasks to ${PLAN}, then codemachine resume; or start again with codemachine start.`,
  ],
  'mend-parked-tasks': [
    { do: 'mend-parked-tasks', file: PLAN },
    `Remove the obstacle, or remove the task from ${PLAN}; codemachine resume tries it again.`,
  ],
  'free-disk-space': [
    { do: 'free-disk-space' },
    'Free some space, then type codemachine resume; nothing recorded before is lost.',
  ],
  decide: [
    { do: 'decide', session: '20261120_1', title: 'Which database?' },
    'Nobody decided in time. To be asked again: codemachine resume 20261120_1.',
  ],
  secret: [
    { do: 'secret', keys: ['API_KEY', 'DB_URL'], directory: '/home/ann/my shop' },
    "To continue: codemachine secret set API_KEY -C '/home/ann/my shop'; codemachine secret set DB_URL -C '/home/ann/my shop'; codemachine resume -C '/home/ann/my shop'",
  ],
  network: [
    { do: 'network', directory: '/home/ann/shop' },
    'codemachine resume --network -C /home/ann/shop continues with the network.',
  ],
  say: [{ do: 'say', text: 'Log in.' }, 'Log in.'],
}

test.each(Object.values(WORDS))('what a person can do is told in a shell: %o', (hint, words) => {
  expect(wordsForHint(hint)).toBe(words)
  expect(describeOutcome({ kind: 'needs-person', reason: 'x', hint }).hint).toBe(words)
})

test('where no required gate passes, that is not said of the reviews', () => {
  expect(wordsForHint({ do: 'read-reviews', gatesPass: false })).toMatch(/^Read the review/)
})

test('what an earlier version said cannot steer a terminal', () => {
  const hint: OutcomeHint = { do: 'say', text: 'a\u001b[2Jb\nc' }
  expect(describeOutcome({ kind: 'needs-person', reason: 'x', hint }).hint).not.toMatch(/\p{Cc}/u)
})

test('what nobody has decided before the time of its session was used up is asked again with more time', () => {
  expect(wordsForHint({ do: 'decide', session: '20261120_1', title: 'Which database?', outOfTime: true })).toBe(
    'The time was used up before anybody decided. To be asked again: codemachine resume 20261120_1, with a longer --max-time.',
  )
})

test('of a call to which the server refused access three times in a row, that is said, and not that it goes on', () => {
  const cause = { class: 'network', message: null, status: 403 } as const
  expect(wordsForCallHint({ do: 'mend-access' }, { cause, waits: true })).toBe(
    'The server refused access three times in a row (HTTP 403). Check if the account, its rights, and a proxy or VPN let codex in.',
  )
})

test('of a call that only a person can mend, what to mend is said, and not that it goes on', () => {
  const told = (['check-codex', 'add-credit', 'mend-codex-configuration'] as const).map(what =>
    wordsForCallHint({ do: what }, { cause: null, waits: false }),
  )
  expect(told).toEqual([
    'Codex crashed three times in a row before it did anything. codemachine doctor checks codex.',
    'Add credit, or use another account.',
    'Fix the codex configuration (codemachine doctor checks it).',
  ])
  expect(wordsForCallHint({ do: 'mend-provider', provider: 'local' }, { cause: null, waits: false })).toBe(
    'Fix that (to test local: codemachine doctor).',
  )
})

test('of a session that ends as planned it is said that nothing is carried out yet, and that it is not done', () => {
  const planned = { kind: 'planned' } as const
  expect(describeOutcome(planned)).toEqual({
    short: 'planned',
    text: 'planned: the plan is accepted, but not carried out yet',
    hint: null,
    tone: 'good',
  })
  expect([exitCodeOf(planned), isFinished(planned)]).toEqual([0, false])
})

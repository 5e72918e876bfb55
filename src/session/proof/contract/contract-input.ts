import { clipEnd } from '../../../base/text.ts'
import { type ContractState, type Control, type Flaw, flawsOf, type Sentence } from '../../../core/rules/contract.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { fenced, joined } from '../../round-input.ts'

/** Longest text of each part, in characters: together less than codex takes in one turn. */
const MOST = { goal: 250_000, said: 60_000, draft: 260_000, flaws: 60_000, diff: 20_000 }

/** Returns the input of a turn that writes or rewrites the contract. Pure. */
export function authorInput({ goal, personSaid, contract }: SessionState): string {
  const replans = contract?.replans ?? []
  const { draft = null, frozen = null, problem = null, change = null } = contract ?? {}
  const before = draft ?? frozen
  const flaws = draft === null ? [] : flawsOf(draft, draft.runs)
  return joined([
    ...wordsOf({ goal, personSaid: personSaid.filter(text => !replans.includes(text)) }),
    replans.length === 0
      ? null
      : `What the person changed of it since, to be quoted as the goal is; where they contradict, this counts:\n${fenced(clipEnd(replans.join('\n\n'), MOST.said))}`,
    before === null
      ? null
      : `The contract as it is now:\n${fenced(clipEnd(JSON.stringify({ sentences: before.sentences }, null, 2), MOST.draft))}`,
    change === null ? null : `The person wants it changed:\n${fenced(clipEnd(change, MOST.said))}`,
    change !== null || flaws.length === 0 ? null : wordsForFlaws(flaws),
    problem === null ? null : `Your last answer could not be used:\n${fenced(clipEnd(problem, MOST.flaws))}`,
    'Write the contract as the requested JSON object.',
  ])
}

function wordsOf({ goal, personSaid }: Pick<SessionState, 'goal' | 'personSaid'>): (string | null)[] {
  return [
    `The goal, in the words of the person:\n${fenced(clipEnd(goal, MOST.goal))}`,
    personSaid.length === 0
      ? null
      : `What the person said later, from which nothing is quoted:\n${fenced(clipEnd(personSaid.join('\n'), MOST.said))}`,
  ]
}

function wordsForFlaws(flaws: readonly Flaw[]): string {
  const lines = flaws.map(({ sentence, problem }) => `- ${sentence}: ${problem}`).join('\n')
  return `The checks ran before any work, and these had the wrong result:\n${fenced(clipEnd(lines, MOST.flaws))}\nFix them. If a sentence is true already, its kind is \`keep\`. If no check can tell, it is \`not-checkable\`.`
}

/** Returns the input of a turn that writes wrong versions for one sentence, without its checks. Pure. */
export function controlInput(state: SessionState, { id, quote, kind }: Sentence): string {
  const { contract } = state
  const isAgain = contract?.asked.some(({ sentence, refusals }) => sentence === id && refusals > 0) === true
  const useless =
    contract?.controls.filter(({ sentence, result }) => isAgain && sentence === id && result !== null) ?? []
  return joined([
    ...wordsOf(state),
    `The sentence that your versions break (${kind.replace('-', ' ')}):\n${fenced(quote)}`,
    isAgain && useless.length === 0
      ? 'Your last answer could not be used. Give one JSON object in the requested format.'
      : null,
    useless.length === 0
      ? null
      : `Your earlier versions do not count:\n${fenced(useless.map(whyUseless).join('\n'))}\nWrite others, in which this sentence is broken and the rest of the project works as before.`,
    'Write the versions as the requested JSON object.',
  ])
}

function whyUseless({ summary, result, problem }: Control): string {
  return `- ${summary}: ${result === 'same' ? 'It is the same program.' : (problem ?? '')}`
}

/** Returns the input of a turn that adds a check against this wrong version. Pure. */
export function secondInput(state: SessionState, { id, quote, checks }: Sentence, { summary, diff }: Control): string {
  return joined([
    ...wordsOf(state),
    `The work is done. This sentence (${id}) holds by its checks:\n${fenced(quote)}`,
    `Its checks:\n${fenced(clipEnd(JSON.stringify(checks, null, 2), MOST.draft))}`,
    `But they also pass on this wrong version of the work, which should break the sentence:\n${fenced(`${summary}\n\n${clipEnd(diff, MOST.diff)}`)}`,
    'Write one more check for this sentence. It must pass on the current work, and fail on this version. If the version does not break the sentence, write one that shows that it holds. Give it as the JSON object that was asked for.',
  ])
}

/** Returns the text of a contract decision: the sentences with their checks. Pure. */
export function contractBody(contract: ContractState): string {
  const { draft, problem } = contract
  if (draft === null) return ''
  const flaws = flawsOf(draft, draft.runs)
  const rows = draft.sentences.map(({ id, kind, quote, reason, checks }) => {
    const flaw = flaws.find(({ sentence }) => sentence === id)
    return [
      `**${id}** (${kind.replace('-', ' ')}) ${quote.replace(/\s+/g, ' ')}`,
      ...(reason === null ? [] : [`  - ${reason}`]),
      ...checks.map(
        ({ run, files }) =>
          `  - \`${run.replaceAll('`', "'").replace(/\s+/g, ' ')}\`${files.length === 0 ? '' : ` with ${files.map(({ path }) => path).join(', ')}`}`,
      ),
      ...(flaw === undefined ? [] : [`  - **Look at this:** ${flaw.problem.split('\n')[0]}`]),
    ].join('\n')
  })
  return [
    ...(problem === null ? [] : [`**${problem}**`]),
    rows.map(row => `- ${row}`).join('\n'),
    ...(draft.uncovered.length === 0
      ? []
      : [
          `Of your goal, this is in no sentence:\n\n${draft.uncovered.map(piece => `> ${piece.replace(/\s+/g, ' ')}`).join('\n>\n')}`,
        ]),
  ].join('\n\n')
}

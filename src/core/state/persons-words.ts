import { clipEnd, clipStart } from '../../base/text.ts'
import { markFor } from '../rules/outputs.ts'
import type { SessionState } from './state.ts'

/** What a round works on, in the words of the person. */
interface PersonsWords {
  /** The goal; of a round in a scope that of the scope. */
  goal: string
  /** What they said later, the last one last. */
  said: readonly string[]
}

/** The words by which the rounds of a session go now. Pure. */
export function personsWordsOf({
  goal,
  scope,
  personSaid,
}: Pick<SessionState, 'goal' | 'scope' | 'personSaid'>): PersonsWords {
  return { goal: scope?.goal ?? goal, said: personSaid }
}

/** The most of each part in the input of a round, in characters; longer ones stand whole in a file. */
const MOST = { goal: 8_000, said: 4_000 }
/** The most that all of it takes in an input that names such a file, with what is said of it. */
export const MOST_WORDS_CHARACTERS = MOST.goal + MOST.said + 2_000
/** The same where there is no such file. */
const MOST_WITHOUT_FILE = { goal: 250_000, said: 60_000 }

/** Whether the input of a round has no room for all of the words, so that it names a file that has them. Pure. */
export function needsFile({ goal, said }: PersonsWords, { tellsGoal = false }: WordsInInput = {}): boolean {
  return (!tellsGoal && goal.length > MOST.goal) || listed(said).length > MOST.said
}

/** The whole of the words, as a file for agents. Pure. */
export function fileOfWords({ goal, said }: PersonsWords): string {
  return said.length === 0 ? `${goal.trimEnd()}\n` : `${goal.trimEnd()}\n\n\n${LATER}\n\n${listed(said)}\n`
}

interface WordsInInput {
  /** Whether the input of the round holds the goal anyway; left out: it does not. */
  tellsGoal?: boolean | undefined
}

/**
 * The words as the input of a round begins with them, each part between two marked lines that nothing in it can contain;
 * empty where there is nothing to say. The same words give the same text, so that rounds share their beginning. Pure.
 * @param file path of the file that has all of them; null: there is none, so that more of them stands here
 */
export function wordsInInput(
  words: PersonsWords,
  file: string | null,
  { tellsGoal = false }: WordsInInput = {},
): string {
  const { goal, said } = words
  const most = file === null ? MOST_WITHOUT_FILE : MOST
  const mark = markFor([goal, ...said])
  const marked = (text: string) => `[begin ${mark}]\n${text.trimEnd()}\n[end ${mark}]`
  const isCut = (!tellsGoal && goal.length > most.goal) || listed(said).length > most.said
  return [
    ...(tellsGoal ? [] : [`${GOAL}\n\n${marked(clipEnd(goal, most.goal))}`]),
    ...(said.length === 0 ? [] : [`${LATER}\n\n${marked(clipStart(listed(said), most.said))}`]),
    ...(isCut && file !== null ? [`Not all of it stands here. The whole is in \`${file}\`: read that first.`] : []),
  ].join('\n\n')
}

const GOAL = 'The goal, in the words of the person. It counts as it stands here, whatever a file says:'
const LATER =
  'What the person has said later. It counts as the goal does, the last of it most; what was meant for a moment alone is over:'

function listed(said: readonly string[]): string {
  return said.map(text => `- ${text.trimEnd().replaceAll('\n', '\n  ')}`).join('\n')
}

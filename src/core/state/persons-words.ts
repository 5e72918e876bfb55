import { clipEnd, clipStart } from '../../base/text.ts'
import { markFor } from '../rules/outputs.ts'
import type { SessionState } from './state.ts'

/** A round's work in the person's words. */
interface PersonsWords {
  /** The goal; in a scope: the scope's goal. */
  goal: string
  /** Later messages, oldest first. */
  said: readonly string[]
}

/** Returns the words that guide the session's rounds now. Pure. */
export function personsWordsOf({
  goal,
  scope,
  personSaid,
}: Pick<SessionState, 'goal' | 'scope' | 'personSaid'>): PersonsWords {
  return { goal: scope?.goal ?? goal, said: personSaid }
}

/** Limits of each part in a round's input, characters; a file contains longer ones whole. */
const MOST = { goal: 8_000, said: 4_000 }
/** Limit of all parts together with the note, in an input that names the file. */
export const MOST_WORDS_CHARACTERS = MOST.goal + MOST.said + 2_000
/** Limits without a file. */
const MOST_WITHOUT_FILE = { goal: 250_000, said: 60_000 }

/** Returns true if the words do not fit into a round's input, so it must name a file. Pure. */
export function needsFile({ goal, said }: PersonsWords, { tellsGoal = false }: WordsInInput = {}): boolean {
  return (!tellsGoal && goal.length > MOST.goal) || listed(said).length > MOST.said
}

/** Returns all words as a file for agents. Pure. */
export function fileOfWords({ goal, said }: PersonsWords): string {
  return said.length === 0 ? `${goal.trimEnd()}\n` : `${goal.trimEnd()}\n\n\n${LATER}\n\n${listed(said)}\n`
}

interface WordsInInput {
  /** True if the input already contains the goal; left out: it does not. */
  tellsGoal?: boolean | undefined
}

/**
 * Returns the words for the start of a round's input. Two marked lines, which no text can contain, enclose each part; empty:
 * no words. Equal words give equal text, so rounds share their prefix. Pure.
 * @param file path of the file with all words; null: no file, so more of them are included
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

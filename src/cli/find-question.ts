import { UserError } from '../base/errors.ts'
import { type AskedQuestion, questionId, questionsOf } from '../session/questions.ts'
import type { Records } from '../session/records.ts'
import { oneLine } from '../ui/safe-text.ts'
import { findSession } from './find-session.ts'

/**
 * The question that a person means: `20261120_1/Q1`, its session named as anywhere else, or `Q1` alone for that of the
 * newest session that has one. A `UserError` that names which there are if it is none.
 * @param onProblem told a sentence for each journal and answer that cannot be read
 */
export async function findQuestion(
  records: Records,
  typed: string,
  onProblem: (problem: string) => void,
): Promise<AskedQuestion> {
  const slash = typed.lastIndexOf('/')
  const name = typed
    .slice(slash + 1)
    .toUpperCase()
    .replace(/^(?=\d+$)/, 'Q')
  const ids = slash === -1 ? (await records.sessions()).reverse() : [await findSession(records, typed.slice(0, slash))]
  const others: string[] = []
  for (const id of ids) {
    const asked = await questionsOrNone(records, id, onProblem)
    const found = asked.find(({ question }) => question === name)
    if (found !== undefined) return found
    others.unshift(...asked.map(questionId))
  }
  throw new UserError(`There is no question "${oneLine(typed, 60)}" in ${records.directory}.`, { hint: hint(others) })
}

async function questionsOrNone(
  records: Records,
  id: string,
  onProblem: (problem: string) => void,
): Promise<AskedQuestion[]> {
  try {
    return await questionsOf(records, id, onProblem)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    onProblem(error.message)
    return []
  }
}

const MOST_SHOWN = 8

function hint(ids: readonly string[]): string {
  if (ids.length === 0) return 'No agent has asked anything there; see: codemachine questions --all'
  return `${ids.length > MOST_SHOWN ? 'The newest are: …, ' : 'There are: '}${ids.slice(-MOST_SHOWN).join(', ')}`
}

import type { Gate } from '../session/gate.ts'
import type { ReviewTerms } from '../session/review.ts'
import type { PrivateGit } from '../workspace/private-git.ts'
import { unmatchedGlobs } from '../workspace/unmatched-globs.ts'

/** The efforts of codex's own models. Those of others may have more. */
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra']

/** What of the proof will not work as it may be meant, a sentence each: else it shows after all the work. */
export async function remarksOnProof(
  git: PrivateGit,
  { gates, reviewer }: { gates: readonly Gate[]; reviewer: ReviewTerms },
): Promise<string[]> {
  const unmatched = await unmatchedGlobs(
    git,
    gates.flatMap(({ protect }) => protect),
  )
  const remarks = gates.flatMap(({ name, protect }) =>
    protect.filter(glob => unmatched.has(glob)).map(glob => `gate ${name}: protect "${glob}" matches no file.`),
  )
  const { effort } = reviewer
  if (effort === null || EFFORTS.includes(effort)) return remarks
  return [...remarks, `reviewer.effort is "${effort}", which no model of codex's own has; a review may fail for it.`]
}

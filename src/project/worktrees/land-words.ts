import { shellWord } from '../../platform/shell-word.ts'
import { formatCount, formatDuration } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import type { Landed, LandingPlace } from './land.ts'

/** Facts of a landing, for its description. */
interface Told {
  place: Pick<LandingPlace, 'checkout' | 'target'>
  /** Id of the landing's record; null: none. */
  record: string | null
  /** Whether a proof was wanted. */
  verify: boolean
}

/** Describes a landed worktree in lines. */
export function describeLanded(landed: Landed, { place: { checkout, target }, record, verify }: Told): string[] {
  const { root } = checkout.repository
  const { branch, into, commit, files, top } = landed
  const remove = howToRemove(top, branch, root)
  if (commit === null) return [`Nothing to land: ${into} already has all of ${branch}.`, remove]
  return [
    `${branch} is merged into ${into} as ${commit.slice(0, 10)}: ${formatCount(files, 'file')} changed.`,
    ...(target.isCheckedOut ? [] : [`${into} is not checked out in ${root}, so no file there has changed.`]),
    proofLine(landed, { record, verify }),
    remove,
  ]
}

/** Describes the proof of a merge in a sentence. */
export function proofLine({ gates }: Landed, { record, verify }: Pick<Told, 'record' | 'verify'>): string {
  if (!verify) return 'Not proved: --no-verify.'
  if (gates.length === 0) return 'Not proved: neither side has gates.'
  const names = gates.map(({ gate, ran }) => `${oneLine(gate.name, 60)} (${formatDuration(ran.durationMs)})`)
  const again = record === null ? '' : ` To run them again: codemachine verify ${record}`
  return `Proved on the merge: ${names.join(', ')}.${again}`
}

function howToRemove(top: string | null, branch: string, root: string): string {
  const git = `git -C ${shellWord(root)}`
  const worktree = top === null ? '' : `${git} worktree remove ${shellWord(top)} && `
  return `To remove ${branch}: ${worktree}${git} branch -d ${branch}`
}

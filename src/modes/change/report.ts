import { clipEnd } from '../../base/text.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { ReportSection } from '../../core/view.ts'
import { ACCEPTED_BY, checkParts, code, listed, openPoints, TASK_HEAD, taskRow } from './summary.ts'
import type { ChangeWork, Worked } from './work.ts'

const REMARK_CHARS = 1_000
const WORDS_CHARS = 9_000
const MOST_FILES = 4

/**
 * Returns a change's part of the report: its plan and who accepted it, the checks and which of them prove it, and open
 * points. A table lists its tasks with their changed files. Null before there is a plan. Pure.
 */
export function changeReport(own: ChangeWork, session: SessionState): ReportSection | null {
  const { planning, execution, words } = own
  if (planning.versions.length === 0) return null
  const open = openPoints(own, session)
  const { tasks, claim } = execution
  const rows = [
    ...tasks.map(record => [...taskRow(record), tokensOf(record.tokens), filesIn(record)]),
    ...(claim.work.changed.length === 0
      ? []
      : [
          [
            '',
            'FIXING',
            'what made codemachine refuse the claim',
            '',
            '',
            claim.work.who ?? '',
            '',
            '',
            filesIn(claim.work),
          ],
        ]),
  ]
  return {
    title: 'The change',
    note: 'What codemachine itself saw; summary.md has everything.',
    text: [
      planLine(own, session),
      ...checkParts(own, session).slice(tasks.length === 0 ? 1 : 0),
      ...(open.length === 0 ? [] : [listed('Open', open)]),
      `How to look: ${code(`codemachine diff ${session.id}/start`)}${session.savepoint === null ? '' : `; how to undo: ${code(`codemachine rewind ${session.id}/start`)}`}`,
      ...(words === null || words.trim() === ''
        ? []
        : [`The planner's own words (a claim, not a proof):\n${clipEnd(words.trim(), WORDS_CHARS)}`]),
    ].join('\n\n'),
    ...(rows.length === 0
      ? {}
      : { table: { head: [...TASK_HEAD, 'tokens', 'files'], rows }, tellsBoard: true as const }),
  }
}

function tokensOf(tokens: number): string {
  return tokens === 0 ? '' : tokens.toLocaleString('en-US')
}

function planLine({ planning: { accepted, versions } }: ChangeWork, { ended }: SessionState): string {
  const last = versions.at(-1)?.version
  if (accepted === null)
    return `Plan: version ${last}, which ${ended === null ? 'is not accepted yet' : 'was not accepted'}.`
  const remark = accepted.remark === null ? '' : `, with the remark: ${clipEnd(accepted.remark, REMARK_CHARS)}`
  return `Plan: version ${accepted.version} of ${last}; ${ACCEPTED_BY[accepted.by]}${remark}`
}

/** `src/api.js +10 −2, src/limit.js +40 −0`. */
function filesIn({ lines, changed }: Worked): string {
  const all = lines?.map(({ path, added, removed }) => `${path} +${added} −${removed}`) ?? changed
  const shown = all.slice(0, MOST_FILES)
  return [...shown, ...(all.length > shown.length ? [`and ${all.length - shown.length} more`] : [])].join(', ')
}

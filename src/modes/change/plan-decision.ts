import { inlineCode } from '../../base/markdown.ts'
import { clipEnd, truncate } from '../../base/text.ts'
import type { Choice, Decision } from '../../core/rules/decision.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { planChanges } from './plan-changes.ts'
import { planMarkdown } from './plan-text.ts'
import { fileOf, lastVersion, MOST_VERSIONS } from './states/planning.ts'
import type { ChangeParts, ChangeWork, PlanVersion } from './work.ts'

/** A person's answers to a plan. */
export const CHOICES = { ...PLAN_CHOICES, edit: 'edit', again: 'again' } as const

/** Most characters of each part of a plan's description; together no more than a decision takes. */
const MOST = { problem: 1_000, files: 1_000, plan: 8_000, proof: 2_500, note: 1_000, changes: 2_000 }

/** Returns the decision whether the last version of a plan may run. Pure. */
export function planDecision(own: ChangeWork, session: SessionState, { folder }: ChangeParts): Decision {
  const { planning } = own
  const version = lastVersion(planning)
  return {
    id: PLAN_DECISION,
    title: `Version ${version.version} of the plan is ready. Carry it out?`,
    body: bodyOf(own, version, session, folder),
    choices: choicesOf(own),
    default: null,
    file: `${folder}/${fileOf(version)}`,
  }
}

function choicesOf({ planning }: ChangeWork): Choice[] {
  const hasRoom = planning.versions.length < MOST_VERSIONS
  const again: Choice = { id: CHOICES.again, label: 'Plan again', hint: 'files that the plan names have changed since' }
  return [
    ...(hasRoom && planning.changedFiles !== null ? [again] : []),
    {
      id: CHOICES.accept,
      label: 'Carry it out',
      hint: 'a remark of yours goes to the agents that carry it out',
      text: 'may',
    },
    ...(hasRoom
      ? [
          {
            id: CHOICES.change,
            label: 'Change it',
            hint: 'say what to change; then you see the new plan',
            text: 'must' as const,
          },
          { id: CHOICES.edit, label: 'Edit it yourself', hint: 'in your editor', opensFile: true as const },
        ]
      : []),
    { id: CHOICES.stop, label: 'Stop', hint: 'codemachine resume asks again' },
  ]
}

function bodyOf(own: ChangeWork, version: PlanVersion, session: SessionState, folder: string): string {
  const { problem, changedFiles, versions } = own.planning
  const text = planMarkdown(version.plan).trim()
  const before = versions.at(-2)
  return [
    ...(before === undefined ? [] : [changesOf(before, version)]),
    ...(problem === null ? [] : [`**${truncate(problem, MOST.problem)}**`]),
    ...(changedFiles === null
      ? []
      : [`**Changed since this plan was made:** ${truncate(changedFiles.map(inlineCode).join(', '), MOST.files)}`]),
    clipEnd(text, MOST.plan),
    ...(text.length <= MOST.plan ? [] : [`The whole plan is in ${inlineCode(`${folder}/${fileOf(version)}`)}.`]),
    proofOf(own, version, session),
    ...(versions.length < MOST_VERSIONS ? [] : [`The plan has ${MOST_VERSIONS} versions, the most it may have.`]),
  ].join('\n\n')
}

/** Says what another version does otherwise, below the person's note that it was made for. */
function changesOf(before: PlanVersion, { plan, feedback }: PlanVersion): string {
  const changes = planChanges(before.plan, plan).map(each => `- ${each}`)
  return [
    ...(feedback === null ? [] : [truncate(feedback, MOST.note).replace(/^/gm, '> ')]),
    `## What changed since version ${before.version}`,
    changes.length === 0 ? 'Nothing.' : clipEnd(changes.join('\n'), MOST.changes),
  ].join('\n\n')
}

/** Says how the end will be proved if the plan is accepted. */
function proofOf(
  { context, planning }: ChangeWork,
  { plan: { verification } }: PlanVersion,
  session: SessionState,
): string {
  // Commands of an accepted version stop being gates once another is accepted.
  const ofPlan = new Set(planning.versions.flatMap(({ plan }) => plan.verification.map(({ run }) => run)))
  const gates = session.gates.filter(({ run }) => !planning.addsGates || !ofPlan.has(run))
  const commands = context?.facts.commands ?? []
  const hasCommand = commands.some(({ kind }) => kind !== 'lint' && kind !== 'run') || gates.length > 0
  const lines = verification.map(({ run }) => `- ${inlineCode(run)}`).join('\n')
  return [
    '## What will count as proof',
    ...(verification.length === 0
      ? []
      : [`If you accept this plan, you accept these commands as proof:\n\n${clipEnd(lines, MOST.proof - 800)}`]),
    ...(gates.length === 0
      ? []
      : [`Your gates: ${truncate(gates.map(({ name }) => inlineCode(name)).join(', '), 500)}`]),
    ...(hasCommand ? [] : ['No test or build command was found in this project.']),
    ...(verification.length > 0 || gates.length > 0 ? [] : ['Nothing: the session will end *not verified*.']),
  ].join('\n\n')
}

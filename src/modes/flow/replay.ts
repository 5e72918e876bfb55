import { withLineEnd } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { OwnStep, Step, Template } from '../../core/template.ts'
import type { MockScript, MockStep, MockWrite } from './file/mock-script.ts'
import type { FlowPlan, FlowStep } from './file/plan.ts'
import { writeOrLook } from './next.ts'
import { titleOf } from './view.ts'
import { type FlowWork, NOTES, workOf } from './work.ts'

/** Means of a replay. */
interface ReplayParts {
  plan: FlowPlan
  script: MockScript
  threads: ReadonlyMap<string, ThreadSpec>
}

/** Prefixes of notes on a failed, and on a skipped step: `passed over` in earlier journals. */
const FAILED = /^failed,/
const SKIPPED = /^(?:skipped|passed over)/

/**
 * Returns the next part of a replayed workflow, in order. Everything was known at the session's start, so it decides
 * nothing.
 */
export function nextOfReplay({ plan, script, threads }: ReplayParts): Pick<Template, 'next' | 'ahead'> {
  const byId = new Map(script.steps.map(step => [step.id, step]))
  return {
    next(session) {
      const own = workOf(session)
      const step = plan.steps[own.at]
      const shown = step && byId.get(step.id)
      if (step === undefined || shown === undefined) return { kind: 'end', outcome: endOf(own) }
      const next = allOf(step, shown, own, threads.get(step.id))[own.now.shown]
      if (next === undefined) throw new Error(`Of the step "${step.id}" there is nothing more to be shown.`)
      return next
    },
    ahead: () => null,
  }
}

function endOf({ now }: FlowWork): Extract<Step, { kind: 'end' }>['outcome'] {
  if (now.failed === null) return { kind: 'replayed' }
  return { kind: 'needs-person', reason: `An output could not be written: ${now.failed}`, hint: null, goalOnly: true }
}

/** Returns everything to show of a step. */
function allOf(step: FlowStep, shown: MockStep, own: FlowWork, thread: ThreadSpec | undefined): Step[] {
  const title = `${titleOf(own, own.at + 1)}: `
  const note = (text: string): OwnStep => ({ kind: 'note', name: nameOf(text), text })
  // A shown round already names the step.
  const named = (text: string) => ({ ...note(text), text: `${title}${text}` })
  return [
    ...shown.before.map(named),
    ...(shown.recording === null || thread === undefined ? [] : [roundOf(step, shown.recording, own, thread)]),
    ...(shown.write === null ? [] : [writeOrLook(step, [shown.write].flat().map(withContent), own)]),
    ...shown.after.map(shown.recording === null ? named : note),
  ]
}

function withContent({ text, ...file }: MockWrite) {
  return { ...file, content: { text: withLineEnd(text) } }
}

function nameOf(text: string): string {
  if (FAILED.test(text)) return NOTES.failed
  return SKIPPED.test(text) ? NOTES.skipped : 'replay'
}

function roundOf(
  step: FlowStep,
  { path, name }: NonNullable<MockStep['recording']>,
  { options: { pace } }: FlowWork,
  thread: ThreadSpec,
): Step {
  const recording = { path, name, pace: pace === 0 ? ('at-once' as const) : { seconds: pace } }
  const { readOnly: _, tools: __, args: ___, ...replayed } = thread
  // The recorded input is unknown here.
  return {
    kind: 'round',
    round: { thread: { ...replayed, engine: 'replay', recording }, part: 'step', input: '', keep: step.id },
  }
}

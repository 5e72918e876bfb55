import * as v from 'valibot'
import { startTimeOf } from '../../platform/processes.ts'
import type { ScreenModel } from '../../ui/screen/screen-model.ts'
import type { CliContext } from '../context.ts'
import type { DraftFile } from './draft-file.ts'

const draftSchema = v.object({
  /** Whose it is. */
  pid: v.pipe(v.number(), v.integer()),
  startTime: v.nullable(v.string()),
  parts: v.array(v.union([v.string(), v.object({ pasted: v.string() })])),
  caret: v.pipe(v.number(), v.integer(), v.minValue(0)),
})

/**
 * Puts what was typed the last time into the composer, above what is typed by now; from then on every change of it is
 * kept. Does nothing beside another screen that keeps its own there.
 */
export async function keepDraft(
  model: ScreenModel,
  draft: DraftFile,
  { pid, platform }: Pick<CliContext, 'pid' | 'platform'>,
): Promise<void> {
  const { composer } = model
  const kept = v.safeParse(draftSchema, await draft.read())
  if (kept.success) {
    const { pid: owner, startTime } = kept.output
    if (owner !== pid && startTime !== null && (await startTimeOf(owner, platform)) === startTime) return
    const typed = composer.text
    composer.restore(kept.output)
    if (typed.trim() !== '') model.addText(typed)
  }
  const me = { pid, startTime: await startTimeOf(pid, platform) }
  let { text } = composer.snapshot().buffer
  composer.subscribe(() => {
    const { buffer } = composer.snapshot()
    if (buffer.text === text) return
    text = buffer.text
    const changed = composer.draft()
    draft.keep(changed.parts.length === 0 ? null : { ...me, ...changed })
  })
}

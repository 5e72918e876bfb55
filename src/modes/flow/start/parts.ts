import type { ModeParts } from '../../../project/modes.ts'
import { RunRecorder } from './run-recorder.ts'

/** What workflows bring to a project. */
export const flowParts: ModeParts = {
  openRecorder: options => new RunRecorder(options),
  async remarksOnResume(records, state) {
    // What it reads a workflow with is loaded where one is gone on with.
    const { remarksOnSources } = await import('./prepare.ts')
    return await remarksOnSources(records, state)
  },
}

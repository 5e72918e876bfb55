import type { ModeParts } from '../../../project/modes.ts'
import { RunRecorder } from './run-recorder.ts'

/** Parts of the flow mode for a project. */
export const flowParts: ModeParts = {
  openRecorder: options => new RunRecorder(options),
  async remarksOnResume(records, state) {
    // Load the workflow reader only for a resumed session.
    const { remarksOnSources } = await import('./prepare.ts')
    return await remarksOnSources(records, state)
  },
}

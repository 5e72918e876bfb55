import type { ModeParts } from '../../../project/modes.ts'
import type { Run } from '../../../project/open-run.ts'
import type { World } from '../../../project/world.ts'
import { RunRecorder } from './run-recorder.ts'

/** Parts of the flow mode for a project. */
export const flowParts: ModeParts = {
  async checkPrompt(world, records, prompt) {
    const { checkFlowPrompt } = await import('./run.ts')
    await checkFlowPrompt(world as World, records, prompt)
  },
  async sessionOfPrompt(world, run, prompt) {
    const { flowOfPrompt } = await import('./run.ts')
    return await flowOfPrompt(world as World, run as Run, prompt)
  },
  openRecorder: options => new RunRecorder(options),
  async remarksOnResume(records, state) {
    // Load the workflow reader only for a resumed session.
    const { remarksOnSources } = await import('./prepare.ts')
    return await remarksOnSources(records, state)
  },
}

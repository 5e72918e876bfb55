// What the simulation enters of the shipped sources: bundled, and loaded into each process of its machine.

export { describeError } from '../src/base/errors.ts'
export { fold } from '../src/core/state/fold.ts'
export { emptyState } from '../src/core/state/state.ts'
export { OWN_ENGINES } from '../src/engines/registry.ts'
export { runFlow } from '../src/modes/flow/start/run.ts'
export { OWN_MODES, OWN_TEMPLATES } from '../src/modes/registry.ts'
export { ownEnvironment } from '../src/project/environment/own-environment.ts'
export { OpenProject } from '../src/project/open-project.ts'
export { foldAndCount, readSessions } from '../src/session/records/journal.ts'
export { openQueue } from '../src/session/records/queue.ts'

import type { ModeParts } from '../../../project/modes.ts'
import { TeamRecorder } from './recorder.ts'

/** What teams bring to a project. */
export const teamParts: ModeParts = { openRecorder: options => new TeamRecorder(options) }

import type { ModeParts } from '../../../project/modes.ts'
import { TeamRecorder } from './recorder.ts'

/** Parts of the team mode for a project. */
export const teamParts: ModeParts = { openRecorder: options => new TeamRecorder(options) }

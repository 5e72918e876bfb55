import { homedir, userInfo } from 'node:os'
// It reads the environment of the process while it is loaded, so only the doors may import it.
import { xdgConfig } from 'xdg-basedir'
import { systemClock } from './base/clock.ts'
import { OWN_ENGINES } from './engines/registry.ts'
import { OWN_MODES, OWN_TEMPLATES } from './modes/registry.ts'
import { ownEnvironment } from './project/environment/own-environment.ts'
import type { OpenOptions, Project } from './project/library.ts'
import { OpenProject } from './project/open-project.ts'
import { configHomeOf, homeOf, type World } from './project/world.ts'

export type { Clock } from './base/clock.ts'
export { UserError } from './base/errors.ts'
export type { ThreadSpec } from './core/engine.ts'
export { defineEngine, type Engine, type EngineKind, type EngineSetup } from './core/engine.ts'
export type { EventOf, LiveEvent, Recorded, RecordedOf, SessionEvent } from './core/events/events.ts'
export type { RoundOutcome, SessionLimits, SessionOutcome, Used } from './core/events/outcome.ts'
export type { PromptTerms, QueuedPrompt } from './core/shapes/queue.ts'
export type { Reply, ReplyCode } from './core/shapes/reply.ts'
export type { PartKind, SessionState, SessionStatus, TemplateView } from './core/state/state.ts'
export type { Step, Template, TemplateKind, TemplateSetup } from './core/template.ts'
export { defineTemplate } from './core/template.ts'
export type { BoardRow, ShownPlan } from './core/view.ts'
export type * from './project/library.ts'
export type { World } from './project/world.ts'
export { withNotices } from './session/round-input.ts'
export type { ReportData } from './tell/report/report-data.ts'

/** The world as this process has it, but for `changes`, whose engines are added to codemachine's own. No signal ends it. */
export function processWorld(changes: Partial<World> = {}): World {
  const { home, env } = homeOf(process.env, changes.home ?? homedir(), () => userInfo().homedir, process.platform)
  return {
    env,
    cwd: process.cwd(),
    home,
    configHome: configHomeOf(xdgConfig, home, process.platform),
    platform: process.platform,
    arch: process.arch,
    node: process.versions.node,
    pid: process.pid,
    clock: systemClock,
    templates: OWN_TEMPLATES,
    modes: OWN_MODES,
    signal: new AbortController().signal,
    ...changes,
    engines: new Map([...OWN_ENGINES, ...(changes.engines ?? [])]),
  }
}

/**
 * Opens a work directory to run sessions in, to watch and to report of: that of `options`, or of the world. Starts nothing
 * and prints nothing. Rejects with a `UserError` if there is no such directory.
 */
export async function openProject(world: World = processWorld(), options: OpenOptions = {}): Promise<Project> {
  const { env } = await ownEnvironment(world)
  return await OpenProject.open({ ...world, env }, options)
}

import type { Agents } from '../agents/agent.ts'
import { openPromptsInBuild } from '../agents/prompts-in-build.ts'
import type { RunnerOptions } from '../session/runner-options.ts'
import type { SessionState } from '../session/state.ts'
import type { Memory } from '../workspace/memory.ts'
import type { SessionFolder } from '../workspace/session-folder.ts'
import { openAgentBook } from './agent-book.ts'
import { buildFilesOf } from './build-files.ts'
import type { Run } from './open-run.ts'
import { templateOf } from './session-template.ts'

/** Who works in the sessions of a run, and how. */
export class Teams {
  readonly #run: Run
  readonly #platform: NodeJS.Platform
  /** What was said of the agents already. */
  readonly #told = new Set<string>()

  constructor(run: Run, platform: NodeJS.Platform) {
    this.#run = run
    this.#platform = platform
  }

  /** That of one session; `place`: where its memory lies. */
  async of(
    { build, template }: SessionState,
    place: SessionFolder,
    memory: Memory,
  ): Promise<Pick<RunnerOptions, 'template' | 'agents' | 'build'>> {
    const { records, settings, remarks } = this.#run
    const { directory } = records
    // Those that a person has tried again are not parked in the file either.
    const tried = build?.tasks.filter(({ parked }) => parked === null) ?? []
    if (tried.length > 0) await memory.markTasks(tried.map(({ id }) => ({ id, parked: null })))
    const agents = build === null ? this.#run.agents : await this.#agents()
    const tell = (remark: string) => void remarks.push(remark)
    const isPlanReady = build?.plan === 'ready'
    const prompts = build && (await openPromptsInBuild({ directory, team: agents.sub, isPlanReady, tell }))
    return {
      template: await templateOf(directory, agents, template, place),
      agents: {
        book: openAgentBook({ agents: async () => await this.#agents(), directory, prompts }),
        directory,
        platform: this.#platform,
        atOnce: settings.agents.atOnce,
      },
      build: prompts && buildFilesOf(directory, prompts),
    }
  }

  /** The agents, with models that codex offers. */
  async #agents(): Promise<Agents> {
    const { agents, remarks } = await this.#run.askForModels()
    this.#run.remarks.push(...remarks.filter(remark => !this.#told.has(remark)))
    for (const remark of remarks) this.#told.add(remark)
    return agents
  }
}

import type { Agent } from './agent.ts'
import { type AgentPrompt, type OwnPrompt, projectPrompt, shippedPrompt } from './agent-prompt.ts'
import { projectPaths } from './project-paths.ts'
import { type ProjectPrompts, readProjectPrompts } from './project-prompts.ts'

export interface PromptsInBuildOptions {
  /** The work directory. */
  directory: string
  /** Those who may be given tasks. */
  team: readonly Agent[]
  /** Whether there is a plan already: then the prompts count as they are now. */
  isPlanReady: boolean
  /** Told what a person should know, a sentence each; every one is told once. */
  tell(remark: string): void
}

/** The prompts of a project's own while it is built: they count as they were when the plan was taken. */
export interface PromptsInBuild {
  /** Looks at them as they are now. Files that are no prompts and were there before are told and left out. */
  look(): Promise<ProjectPrompts>
  /** From now on these count, whoever changes the files. */
  keep(prompts: ProjectPrompts): void
  /** The prompt that an agent works by. */
  promptOf(agent: Agent): Promise<AgentPrompt>
}

/** To be opened before the first round, so that what is a person's is told from what agents write. */
export async function openPromptsInBuild({
  directory,
  team,
  isPlanReady,
  tell,
}: PromptsInBuildOptions): Promise<PromptsInBuild> {
  const first = await readProjectPrompts(directory, team)
  const before = new Set(first.strange.map(({ stamp }) => stamp))
  const told = new Set<string>()
  const tellOnce = (remark: string) => {
    if (!told.has(remark)) tell(remark)
    told.add(remark)
  }
  let kept = isPlanReady ? first.own : null
  return {
    async look() {
      const prompts = await readProjectPrompts(directory, team)
      const isNew = ({ stamp }: { stamp: string }) => !before.has(stamp)
      for (const { problem } of prompts.strange.filter(each => !isNew(each)))
        tellOnce(`${problem} It is left as it is.`)
      return { ...prompts, strange: prompts.strange.filter(isNew) }
    },
    keep({ own }) {
      kept = own
    },
    async promptOf(agent) {
      const now = await projectPrompt(directory, agent.name)
      const counts = kept === null ? now : (kept.get(agent.name) ?? null)
      if (!isSame(now, counts)) tellOnce(changed(agent.name))
      if (counts === null) return await shippedPrompt(agent)
      return 'problem' in counts ? counts : { text: counts.text, from: 'project' }
    },
  }
}

function isSame(one: OwnPrompt | null, other: OwnPrompt | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function changed(name: string): string {
  const file = `${projectPaths.agentsFolder}/${name}.md`
  return `${file} was changed during the build; ${name} goes on by what it was told before, until the next build or codemachine resume.`
}

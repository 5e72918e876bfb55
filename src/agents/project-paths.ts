import { join } from 'node:path'
import { memoryHome } from '../workspace/memory-home.ts'
import { planPaths } from '../workspace/plan-files.ts'
import { projectFolders, specificationFile } from '../workspace/project-folders.ts'

const plan = planPaths('')

/** What prompts say of where a project's files are; relative to the work directory. */
export const projectPaths = {
  agentsFolder: projectFolders.agents,
  /** The agents as data. */
  agentsConfig: join(projectFolders.agents, 'agents-config.json'),
  inputs: projectFolders.inputs,
  specification: specificationFile,
  tasks: plan.tasks,
  summary: plan.summary,
  earlier: plan.earlier,
  kb: join(memoryHome, 'kb'),
  memoryFolder: projectFolders.memory,
}

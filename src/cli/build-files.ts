import { problemsWith, withOwnPrompt } from '../agents/project-prompts.ts'
import type { PromptsInBuild } from '../agents/prompts-in-build.ts'
import { UserError } from '../base/errors.ts'
import type { BuildFiles } from '../session/runner-options.ts'
import { checkPlanFiles, writePlanSummary } from '../workspace/plan-files.ts'

/** The files of a build in a work directory. `prompts`: those of the project, which are kept once there is a plan. */
export function buildFilesOf(directory: string, prompts: PromptsInBuild): BuildFiles {
  return {
    async checkPlan() {
      const found = await prompts.look()
      const checked = await checkPlanFiles(directory, { agents: withOwnPrompt(found), problems: problemsWith(found) })
      if (checked.ok) prompts.keep(found)
      return checked
    },
    async keepSummary(text) {
      try {
        await writePlanSummary(directory, text)
        return null
      } catch (error) {
        if (error instanceof UserError) return error.message
        throw error
      }
    },
  }
}

import type { BuildStep } from './build-place.ts'
import { planFile, planText, projectPrompts } from './build-plan.ts'
import { addFile, patch } from './demo-patch.ts'
import { conclude, say, shell, think } from './demo-words.ts'

/** The team builder's round: prompts of the project's own, and the plan. */
export function teamBuilding(parks: boolean): readonly BuildStep[] {
  return [
    () => [
      say('I read what is wanted, and who there is.'),
      shell('cat .codemachine/inputs/specifications.md .codemachine/agents/agents-config.json; git log --oneline; ls'),
    ],
    () => [
      think(
        '**Who is needed?**\n\nThe specification is short: a list, a page, a command. Four of the agents are enough, each with a few sentences about this project.',
      ),
      patch(...Object.entries(projectPrompts).map(([name, text]) => addFile(`.codemachine/agents/${name}.md`, text))),
    ],
    () => [
      say('Now the plan: eight tasks, each with a check that can be run.'),
      shell(
        `mkdir -p .codemachine/plan && cat > ${planFile} <<'EOF'\n${planText(parks)}EOF\nnode -p "JSON.parse(fs.readFileSync('${planFile}')).tasks.length + ' tasks'"`,
      ),
    ],
    () => [conclude('Four agents have prompts for this project, and plan/tasks.json has eight tasks in four phases.')],
  ]
}

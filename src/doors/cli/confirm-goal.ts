import type { Records } from '../../session/records/records.ts'
import { safeText } from '../../tell/words/safe-text.ts'
import type { CliContext } from '../screen/cli-context.ts'
import { editTextOnTerminal } from './decision-prompt.ts'
import { readText } from './flags.ts'
import { askWord } from './output.ts'

/** A goal as a person is shown it before they confirm it. */
export function shownGoal(goal: string): string {
  return `\nThe goal:\n\n${safeText(goal)}\n\n`
}

/** Shows a proposed goal, and answers with it as the person wants it; null if they do not. */
export async function confirmGoal(context: CliContext, records: Records, proposed: string): Promise<string | null> {
  for (let goal = proposed; ; ) {
    context.stdout.write(shownGoal(goal))
    const answer = await askWord(context, 'Work on this?', ['yes', 'edit', 'no'])
    if (answer === 'edit') goal = (await editTextOnTerminal(context, records, goal)) ?? goal
    else if (answer === 'yes') return await readText(context, goal)
    else {
      context.stdout.write('Nothing starts.\n')
      return null
    }
  }
}

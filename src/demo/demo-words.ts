import type { ReplyItem } from './reply.ts'
import { message, reasoning, shell as runShell, type updatePlan } from './reply-items.ts'

/** A command without a login shell, which may set a PATH without the node that runs the demo. */
export function shell(cmd: string): ReplyItem {
  return runShell(cmd, { login: false })
}

/** Something that the model says on the way. */
export function say(text: string): ReplyItem {
  return message(text, { phase: 'commentary', chunkSize: demoChunkSize })
}

/** The model's last words of a turn. */
export function conclude(text: string): ReplyItem {
  return message(text, { phase: 'final_answer', chunkSize: demoChunkSize })
}

/** What the model thinks. */
export function think(text: string): ReplyItem {
  return reasoning(text, { chunkSize: demoChunkSize })
}

/** Steps of a plan for `updatePlan`, of which the first ones are done. */
export function steps(done: number, ...names: readonly string[]): Parameters<typeof updatePlan>[0] {
  return names.map((step, index) => {
    if (index < done) return { step, status: 'completed' }
    return { step, status: index === done ? 'in_progress' : 'pending' }
  })
}

/** About a word, so that text flows where somebody watches. */
const demoChunkSize = 8

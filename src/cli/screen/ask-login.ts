import { type AskOptions, askAppServer } from '../../codex/ask-app-server.ts'
import type { LoginState } from '../../ui/start/start-facts.ts'
import type { CliContext } from '../context.ts'

/** Asks codex whether it is logged in, in at most 10 s. Its process has ended when this resolves, by `signal` at once. */
export async function askLogin(
  { clock, platform }: Pick<CliContext, 'clock' | 'platform'>,
  options: Omit<AskOptions, 'clock' | 'platform'>,
  signal: AbortSignal,
): Promise<LoginState> {
  const asked = await askAppServer({ ...options, clock, platform }, signal, async ask =>
    loginOf(await ask('account/read', {})),
  )
  return 'why' in asked ? { kind: 'unknown', why: asked.why } : asked.answer
}

function loginOf(answer: unknown): LoginState {
  const { account, requiresOpenaiAuth } = Object(answer)
  if (typeof account === 'object' && account !== null) return { kind: 'in', by: accountName(account) }
  if (requiresOpenaiAuth === false) return { kind: 'not-needed' }
  if (requiresOpenaiAuth === true) return { kind: 'out' }
  return { kind: 'unknown', why: 'codex answered nothing that is known' }
}

function accountName(account: object): string {
  const { type, planType } = { type: null, planType: null, ...account }
  if (type === 'apiKey') return 'an API key'
  if (type === 'chatgpt') return typeof planType === 'string' ? `ChatGPT (${planType})` : 'ChatGPT'
  return String(type)
}

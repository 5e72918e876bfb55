import type { JsonObject } from './model-request.ts'
import type { UsageWindows } from './reply.ts'

/**
 * Text of an `auth.json` with which codex counts as logged in with ChatGPT. Its tokens are signed by nobody, and are good
 * for a scripted model only.
 *
 * @param now Unix time, ms
 */
export function chatGptLogin(now: number): string {
  const issued = Math.floor(now / 1000)
  const token = [
    { alg: 'none', typ: 'JWT' },
    {
      email: 'person@example.org',
      iat: issued,
      exp: issued + 30 * 24 * 60 * 60,
      'https://api.openai.com/auth': {
        chatgpt_plan_type: 'plus',
        chatgpt_user_id: 'user',
        chatgpt_account_id: 'account',
      },
    },
    'nobody',
  ]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return JSON.stringify({
    auth_mode: 'chatgpt',
    OPENAI_API_KEY: null,
    tokens: { id_token: token, access_token: token, refresh_token: 'none', account_id: 'account' },
    last_refresh: new Date(now).toISOString(),
  })
}

/** What the ChatGPT backend answers to `GET …/wham/usage`. `now`: Unix time, ms. */
export function usageAnswer({ primary, secondary }: UsageWindows, now: number): JsonObject {
  const window = (of: UsageWindows['primary']) =>
    of === undefined
      ? null
      : {
          used_percent: of.usedPercent,
          limit_window_seconds: of.windowMinutes * 60,
          reset_after_seconds: Math.max(0, of.resetsAt - Math.floor(now / 1000)),
          reset_at: of.resetsAt,
        }
  const isReached = [primary, secondary].some(each => each !== undefined && each.usedPercent >= 100)
  return {
    plan_type: 'plus',
    rate_limit: {
      allowed: !isReached,
      limit_reached: isReached,
      primary_window: window(primary),
      secondary_window: window(secondary),
    },
    credits: null,
    additional_rate_limits: null,
  }
}

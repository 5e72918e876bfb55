import type { UsageWindow } from '../events/outcome.ts'
import { NO_TRENDS, type UsageTrends } from '../rules/forecast.ts'

/** How much of one login's usage windows is used, and by the rounds of the session on it. */
interface LoginUsage {
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  /** Whether the account uses credits after a window is full. */
  hasCredits: boolean
  /** What the rounds have used of each window. */
  usageTrends: UsageTrends
}

/** The usage of the login whose rounds run, by its name; and that of the others. */
export interface UsedLogins extends LoginUsage {
  login: string
  otherLogins: Readonly<Record<string, LoginUsage>>
}

/** The login of codex. */
export const CODEX_LOGIN = 'codex'

const NO_USAGE: LoginUsage = { primaryWindow: null, secondaryWindow: null, hasCredits: false, usageTrends: NO_TRENDS }

/** That of codex, of which nothing is known yet. */
export const NO_LOGINS: UsedLogins = { ...NO_USAGE, login: CODEX_LOGIN, otherLogins: {} }

/** The login that an engine uses: its own, except that `codex exec` has that of codex. */
export function loginOfEngine(engine: string): string {
  return engine === 'exec' ? CODEX_LOGIN : engine
}

/** What is known of a login's usage; `login` null: one that tells nothing. Pure. */
export function usageOf(logins: UsedLogins, login: string | null): LoginUsage {
  const { primaryWindow, secondaryWindow, hasCredits, usageTrends } = logins
  if (login === logins.login) return { primaryWindow, secondaryWindow, hasCredits, usageTrends }
  return (login === null ? null : logins.otherLogins[login]) ?? NO_USAGE
}

/** The same with another usage of a login. Pure. */
export function withUsage<Logins extends UsedLogins>(logins: Logins, login: string, usage: LoginUsage): Logins {
  if (login === logins.login) return { ...logins, ...usage }
  return { ...logins, otherLogins: { ...logins.otherLogins, [login]: usage } }
}

/** The same where rounds use the login of this engine from now on. Pure. */
export function onLoginOf<Logins extends UsedLogins>(logins: Logins, engine: string): Logins {
  const login = loginOfEngine(engine)
  if (login === logins.login) return logins
  const { [login]: _, ...others } = logins.otherLogins
  const left = usageOf(logins, logins.login)
  return { ...logins, ...usageOf(logins, login), login, otherLogins: { ...others, [logins.login]: left } }
}

import type { UsageWindow } from '../events/outcome.ts'
import { NO_TRENDS, type UsageTrends } from '../rules/forecast.ts'

/** Use of one login's usage windows, in total and by the session's rounds. */
interface LoginUsage {
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  /** True if the account uses credits after a window is full. */
  hasCredits: boolean
  /** Use of each window by the rounds. */
  usageTrends: UsageTrends
}

/** Usage of the current login, its name, and usage of other logins. */
export interface UsedLogins extends LoginUsage {
  login: string
  otherLogins: Readonly<Record<string, LoginUsage>>
}

/** The login of codex. */
export const CODEX_LOGIN = 'codex'

const NO_USAGE: LoginUsage = { primaryWindow: null, secondaryWindow: null, hasCredits: false, usageTrends: NO_TRENDS }

/** Codex's login, with unknown usage. */
export const NO_LOGINS: UsedLogins = { ...NO_USAGE, login: CODEX_LOGIN, otherLogins: {} }

/** Returns the login of an engine: its own name; `codex exec` shares codex's login. */
export function loginOfEngine(engine: string): string {
  return engine === 'exec' ? CODEX_LOGIN : engine
}

/** Returns the known usage of a login; `login` null: one without reports. Pure. */
export function usageOf(logins: UsedLogins, login: string | null): LoginUsage {
  const { primaryWindow, secondaryWindow, hasCredits, usageTrends } = logins
  if (login === logins.login) return { primaryWindow, secondaryWindow, hasCredits, usageTrends }
  return (login === null ? null : logins.otherLogins[login]) ?? NO_USAGE
}

/** Returns the logins with new usage of one. Pure. */
export function withUsage<Logins extends UsedLogins>(logins: Logins, login: string, usage: LoginUsage): Logins {
  if (login === logins.login) return { ...logins, ...usage }
  return { ...logins, otherLogins: { ...logins.otherLogins, [login]: usage } }
}

/** Returns the logins after a switch to this engine's login. Pure. */
export function onLoginOf<Logins extends UsedLogins>(logins: Logins, engine: string): Logins {
  const login = loginOfEngine(engine)
  if (login === logins.login) return logins
  const { [login]: _, ...others } = logins.otherLogins
  const left = usageOf(logins, logins.login)
  return { ...logins, ...usageOf(logins, login), login, otherLogins: { ...others, [logins.login]: left } }
}

import { unreachable } from '../../base/errors.ts'
import type { LoginState } from '../../ui/start/start-facts.ts'
import type { LoginEnd } from './log-in.ts'
import { homeOfRounds, type LoginPlace, loginOfRounds, ownHome } from './login-place.ts'

/** What a person should know before they log in; null: nothing. */
export function beforeLogin({ setting }: Pick<LoginPlace, 'setting'>): string | null {
  if (setting !== 'own') return null
  return 'The setting codexHome is "own": rounds use your own codex login, and not this one, until it is "auto" or "codemachine".'
}

/** That somebody has logged in, and whether rounds use that. */
export async function afterLogin(place: LoginPlace, login: LoginState): Promise<string> {
  const home = await homeOfRounds(place)
  const done = loggedIn(login)
  if ('problem' in home) return `${done} ${home.problem}`
  return home.path === ownHome(place)
    ? `${done} Rounds use it from now on.`
    : `${done} Rounds use ${home.path} all the same.`
}

function loggedIn(login: LoginState): string {
  switch (login.kind) {
    case 'in':
      return `Logged in: ${login.by}.`
    case 'not-needed':
      return 'Logged in, though the provider of the model takes no login of OpenAI.'
    case 'unknown':
      return `Codex has logged in, but cannot tell who it is: ${login.why}.`
    case 'out':
      return 'Nobody is logged in.'
    default:
      return unreachable(login)
  }
}

/** That nobody has. */
export function withoutLogin({ stays, why }: LoginEnd & { kind: 'not' }): string {
  const who = stays ? 'Nobody else has logged in: the login from before is as it was.' : 'Nobody is logged in.'
  return why === null ? who : `${who} ${why}`
}

/** That codex is logged out, and what rounds use then. */
export async function afterLogout(place: LoginPlace, wasIn: boolean): Promise<string> {
  const done = wasIn ? 'Logged out.' : 'Nobody was logged in.'
  const rounds = await loginOfRounds(place)
  return 'problem' in rounds ? `${done} ${rounds.problem}` : `${done} ${roundsUse(rounds)}`
}

/** Which of codex's homes rounds use, and who is logged in there. */
export function roundsUse({
  home,
  login,
}: Exclude<Awaited<ReturnType<typeof loginOfRounds>>, { problem: string }>): string {
  const whose = home.owner === 'person' ? 'your own codex' : "codemachine's own codex"
  return `Rounds use ${whose} (${home.path}), ${who(login)}`
}

function who(login: LoginState): string {
  switch (login.kind) {
    case 'in':
      return `logged in with ${login.by}.`
    case 'not-needed':
      return 'whose provider of the model takes no login of OpenAI.'
    case 'unknown':
      return `which cannot tell whether it is logged in: ${login.why}.`
    case 'out':
      return 'where nobody is logged in.'
    default:
      return unreachable(login)
  }
}

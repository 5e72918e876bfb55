import { unreachable } from '../../base/errors.ts'

/** Whether codex is logged in. `by`: account, as in `ChatGPT (pro)`; `why`: a sentence or its end. */
export type LoginState =
  | { kind: 'in'; by: string }
  | { kind: 'out' }
  | { kind: 'not-needed' }
  | { kind: 'unknown'; why: string }

/** Codex's home for rounds; `problem`: a sentence why there is none. `isOwn`: whether a login goes into this one. */
export type HomeOfRounds = { path: string; owner: 'person' | 'codemachine'; isOwn: boolean } | { problem: string }

/** The same, with its login. */
export type LoginOfRounds =
  | { home: Exclude<HomeOfRounds, { problem: string }>; login: LoginState }
  | { problem: string }

/** Returns what a person should know before a login, by the setting `codexHome`; null: nothing. */
export function beforeLogin(setting: string): string | null {
  if (setting !== 'own') return null
  return 'Because the setting codexHome is "own", rounds still use your own codex login. To use this one, set it to "auto" or "codemachine".'
}

/** Lines for a person before codex opens a browser. */
export const WITHOUT_BROWSER = `codemachine: If no browser opens here, press Ctrl+C and type: codemachine login --device-auth
codemachine: (The "codex login --device-auth" that codex suggests changes your own login instead.)
`

/** Says that somebody has logged in, and whether rounds use it. */
export function afterLogin(login: LoginState, home: HomeOfRounds): string {
  const done = loggedIn(login)
  if ('problem' in home) return `${done} ${home.problem}`
  return home.isOwn ? `${done} Rounds now use it.` : `${done} Rounds still use ${home.path}.`
}

function loggedIn(login: LoginState): string {
  switch (login.kind) {
    case 'in':
      return `Logged in: ${login.by}.`
    case 'not-needed':
      return 'Logged in, but the model provider does not use an OpenAI login.'
    case 'unknown':
      return `Codex has logged in, but cannot say as whom: ${login.why}.`
    case 'out':
      return 'Nobody is logged in.'
    default:
      return unreachable(login)
  }
}

/** Says that nobody has. `stays`: whether an earlier login is unchanged; `why`: a sentence, or null. */
export function withoutLogin({ stays, why }: { stays: boolean; why: string | null }): string {
  const who = stays ? 'No new login: the earlier login is unchanged.' : 'Nobody is logged in.'
  return why === null ? who : `${who} ${why}`
}

/** Says that codex is logged out, and which login rounds use then. `wasIn`: whether there was a login. */
export function afterLogout(wasIn: boolean, rounds: LoginOfRounds): string {
  const done = wasIn ? 'Logged out.' : 'Nobody was logged in.'
  return 'problem' in rounds ? `${done} ${rounds.problem}` : `${done} ${roundsUse(rounds)}`
}

/** Says which codex home rounds use, and who is logged in there. */
export function roundsUse({ home, login }: Exclude<LoginOfRounds, { problem: string }>): string {
  const whose = home.owner === 'person' ? 'your own codex folder' : "codemachine's own codex folder"
  return `Rounds use ${whose} (${home.path}), ${who(login)}`
}

function who(login: LoginState): string {
  switch (login.kind) {
    case 'in':
      return `logged in with ${login.by}.`
    case 'not-needed':
      return 'whose model provider does not use an OpenAI login.'
    case 'unknown':
      return `which cannot tell whether it is logged in: ${login.why}.`
    case 'out':
      return 'where nobody is logged in.'
    default:
      return unreachable(login)
  }
}

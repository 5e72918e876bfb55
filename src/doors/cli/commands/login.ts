import { UserError } from '../../../base/errors.ts'
import { homeOfRounds, loginOfRounds, logOut, openLoginPlace } from '../../../project/login.ts'
import { afterLogin, afterLogout, beforeLogin, roundsUse, withoutLogin } from '../../../tell/words/login.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { askKey, logInOnTerminal } from '../../screen/login-terminal.ts'
import { type LookFlags, printDone } from '../flags.ts'
import { warnOn } from '../warn-on.ts'

interface LoginFlags extends Pick<LookFlags, 'json'> {
  deviceAuth?: true
  withApiKey?: true
  codexBin?: string
}

/** `codemachine login`: 0 if somebody has logged in, 4 if not, 130 if they left by Ctrl+C. A browser wants a terminal. */
export async function login(context: CliContext, { deviceAuth, withApiKey, ...flags }: LoginFlags): Promise<number> {
  const way = withApiKey ? 'api-key' : deviceAuth ? 'device' : 'browser'
  if (way === 'browser' && !(context.stdin.isTTY && context.stdout.isTTY)) {
    throw new UserError(
      'CM0105',
      'The login in the browser needs a terminal; use --device-auth, or pipe a key to --with-api-key.',
    )
  }
  const place = await openLoginPlace(context, flags)
  const remark = beforeLogin(place.setting)
  if (remark !== null) warnOn(context)(remark)
  const typed = way === 'api-key' && context.stdin.isTTY ? await askKey(context) : null
  if (typed?.kind === 'left') return left(context, typed.interrupted, 'No key was typed.')
  const end = await logInOnTerminal(context, place, way, typed?.key ?? null, flags.json === true)
  if (end.kind === 'not') return left(context, end.interrupted, withoutLogin(end))
  return printDone(context, flags, afterLogin(end.login, await homeOfRounds(place)), { login: end.login.kind })
}

function left({ signal, stderr }: CliContext, interrupted: boolean, sentence: string): number {
  if (!interrupted) throw new UserError('CM0306', sentence, { exitCode: 4 })
  stderr.write(`codemachine: ${sentence}\n`)
  return signal.reason === 'SIGTERM' ? 143 : 130
}

/** `codemachine login status`: what rounds use; 4 if nobody is logged in there. */
export async function loginStatus(context: CliContext, flags: Pick<LoginFlags, 'codexBin' | 'json'>): Promise<number> {
  const rounds = await loginOfRounds(await openLoginPlace(context, flags))
  if ('problem' in rounds) throw new UserError('CM0302', rounds.problem, { exitCode: 4 })
  printDone(context, flags, roundsUse(rounds), { login: rounds.login.kind })
  return rounds.login.kind === 'in' || rounds.login.kind === 'not-needed' ? 0 : 4
}

/** `codemachine logout`: takes the login away that was made for codemachine, and says what rounds use then. */
export async function logout(context: CliContext, flags: Pick<LoginFlags, 'codexBin' | 'json'>): Promise<number> {
  const place = await openLoginPlace(context, flags)
  const wasIn = await logOut(place)
  return printDone(context, flags, afterLogout(wasIn, await loginOfRounds(place)))
}

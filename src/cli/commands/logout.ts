import type { CliContext } from '../context.ts'
import { logOut } from '../login/log-out.ts'
import { openLoginPlace } from '../login/login-place.ts'
import { afterLogout } from '../login/words-for-login.ts'

/** `codemachine logout`: takes the login away that was made for codemachine, and says what rounds use then. */
export async function logout(context: CliContext, flags: { codexBin?: string }): Promise<number> {
  const place = await openLoginPlace(context, flags)
  context.stdout.write(`${await afterLogout(place, await logOut(place))}\n`)
  return 0
}

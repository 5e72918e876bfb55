import {
  hasOwnLogin,
  homeOfRounds,
  type LoginEnd,
  type LoginPlace,
  type LoginWay,
  loginOfRounds,
  logOut,
  NO_FACTS,
  NOT_LOGGED_IN,
} from '../../../project/login.ts'
import { codexInUse } from '../../../project/start/start-facts.ts'
import { afterLogin, afterLogout, beforeLogin, withoutLogin } from '../../../tell/words/login.ts'
import { letGoOfKeys } from './lent-terminal.ts'
import type { SlashPlace } from './person-screen.ts'

/** `/login`: codex's own login, in the terminal, which it is lent. */
export async function loginOnScreen(slash: SlashPlace, rest: string): Promise<void> {
  const { screen } = slash.person
  const place = await placeOf(slash)
  const way = await chooseWay(slash, place, rest)
  if (way === null) return
  let end: LoginEnd | null = null
  await screen.lend(async () => {
    end = await inTerminal(slash.context, place, way)
  })
  // The compiler does not see that the action has run.
  const ended = end as LoginEnd | null
  if (ended === null) return screen.notice('The terminal is in use', 'warning')
  if (ended.kind === 'not') return screen.say(withoutLogin(ended), 'warning')
  screen.say(afterLogin(ended.login, await homeOfRounds(place)), 'good')
  await showLogin(slash, place)
}

/** `/logout`: takes codemachine's own login away. */
export async function logoutOnScreen(slash: SlashPlace): Promise<void> {
  const place = await placeOf(slash)
  const wasIn = await logOut(place)
  slash.person.screen.say(afterLogout(wasIn, await loginOfRounds(place)), wasIn ? 'good' : 'plain')
  await showLogin(slash, place)
}

async function placeOf({ context, records, settings, start }: SlashPlace): Promise<LoginPlace> {
  return {
    world: context,
    codex: await codexInUse(context, records, settings),
    setting: settings.codexHome,
    root: records.root,
    directory: records.directory,
    settings,
    overrides: start?.options().config ?? [],
  }
}

/** As on the command line, if it was typed behind the name. What else was typed is not repeated: it may be a key. */
async function chooseWay({ person }: SlashPlace, place: LoginPlace, rest: string): Promise<LoginWay | null> {
  const typed = rest.trim()
  if (typed !== '') {
    const way = TYPED[typed] ?? null
    if (way === null) person.screen.notice('/login accepts --device-auth or --with-api-key', 'warning')
    return way
  }
  const remark = beforeLogin(place.setting)
  const answer = await person.screen.choose({
    title: 'How do you log in?',
    ...(remark === null ? {} : { body: [remark] }),
    options: [
      { id: 'browser', label: 'In the browser', hint: 'with your ChatGPT account' },
      { id: '--device-auth', label: 'With a code', hint: 'that you type in a browser on any machine' },
      { id: '--with-api-key', label: 'With an API key', hint: 'not shown as you type it' },
    ],
  })
  return answer.kind === 'chosen' ? (TYPED[answer.id] ?? null) : null
}

const TYPED: Readonly<Record<string, LoginWay>> = {
  browser: 'browser',
  '--device-auth': 'device',
  '--with-api-key': 'api-key',
}

async function inTerminal(context: SlashPlace['context'], place: LoginPlace, way: LoginWay): Promise<LoginEnd> {
  const { askKey, logInOnTerminal } = await import('../login-terminal.ts')
  await letGoOfKeys(context)
  const typed = way === 'api-key' ? await askKey(context) : null
  if (typed?.kind === 'left') return { kind: 'not', stays: false, interrupted: true, why: 'No key was typed.' }
  return await context.host.withoutInterrupt(() => logInOnTerminal(context, place, way, typed?.key ?? null))
}

/** The start screen tells it, and of `/login` and `/logout` the one that applies is offered. */
async function showLogin({ person }: SlashPlace, place: LoginPlace): Promise<void> {
  const rounds = await loginOfRounds(place)
  if ('problem' in rounds) return
  const { login } = rounds
  const { model } = person.screen
  const facts = model.facts ?? NO_FACTS
  const missing = facts.missing.filter(each => each !== NOT_LOGGED_IN)
  model.facts = {
    ...facts,
    login,
    hasOwnLogin: await hasOwnLogin(place),
    missing: login.kind === 'out' ? [...missing, NOT_LOGGED_IN] : missing,
  }
  person.refreshCommands()
}

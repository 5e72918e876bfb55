import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import process, { argv, env, exit, stdout } from 'node:process'
import type { ForgeRequest, ForgeState } from './scripted-forge.ts'

/** A scripted `gh` or `glab`: `scripted-forge.ts` says what it does. Arguments: its folder, its name, and those of the program. */

const [folder = '', name = '', ...args] = argv.slice(2)
const command = args.slice(0, 2).join(' ')
const isGh = name === 'gh'

const FLAGS: Record<string, Record<string, string[]>> = {
  gh: {
    'auth status': ['hostname'],
    'pr list': ['repo', 'head', 'state', 'limit', 'json'],
    'pr create': ['repo', 'head', 'base', 'title', 'body-file', 'draft'],
    'pr edit': ['repo', 'body-file'],
    'pr ready': ['repo', 'undo'],
    'issue view': ['repo', 'json'],
  },
  glab: {
    'auth status': ['hostname'],
    'mr list': ['repo', 'source-branch', 'per-page', 'output'],
    'mr create': ['repo', 'head', 'source-branch', 'target-branch', 'title', 'description', 'draft', 'yes'],
    'mr update': ['repo', 'description', 'draft', 'ready'],
    'issue view': ['repo', 'comments', 'per-page', 'output'],
  },
}
const SWITCHES = ['draft', 'undo', 'yes', 'ready', 'comments']

const input = args.includes('--body-file') ? readFileSync(0, 'utf8') : ''
appendFileSync(`${folder}/calls`, `${JSON.stringify({ program: name, args, input })}\n`)
const state: ForgeState = JSON.parse(readFileSync(`${folder}/state`, 'utf8'))
if (env.NO_COLOR === undefined || (isGh ? env.GH_PROMPT_DISABLED : env.NO_PROMPT) !== '1') fail('? What now?')
const { said, words } = flags()
const instead = state.instead[command]
if (instead === undefined) carryOut()
else playInstead(instead)

function fail(text: string, exitCode = 1): never {
  writeSync(2, `${text}\n`)
  return exit(exitCode)
}

function flags() {
  const known = FLAGS[name]?.[command] ?? fail(`unknown command "${command}"`)
  const said: Record<string, string> = {}
  const words: string[] = []
  for (let at = 2; at < args.length; at++) {
    const arg = args[at] ?? ''
    const [, flag, value] = /^--([a-z-]+)(?:=([\s\S]*))?$/.exec(arg) ?? []
    if (flag === undefined) words.push(arg)
    else if (!known.includes(flag)) fail(`unknown flag: --${flag}`)
    else said[flag] = SWITCHES.includes(flag) ? 'true' : (value ?? args[++at] ?? '')
  }
  return { said, words }
}

function playInstead({ stdout: text = '', stderr, megabytes = 0, exitCode, hangs }: NonNullable<typeof instead>): void {
  if (hangs) {
    const child = spawn('sleep', ['300'], { stdio: 'inherit' })
    writeFileSync(`${folder}/child`, String(child.pid))
    setInterval(() => {}, 1000)
    return
  }
  stdout.write('x'.repeat(megabytes * 1024 * 1024) + text)
  if (stderr !== undefined) fail(stderr, exitCode)
  process.exitCode = exitCode ?? 0
}

function print(value: unknown): void {
  // A pipe takes it in parts.
  stdout.write(`${JSON.stringify(value)}\n`)
}

function keep(request: ForgeRequest | undefined): void {
  if (request === undefined) fail('no such request')
  writeFileSync(`${folder}/state`, JSON.stringify(state))
}

function url(number: number): string {
  return `https://forge.test/acme/shop/${isGh ? 'pull' : '-/merge_requests'}/${number}`
}

function listed({ number, body, isDraft, isFork = false }: ForgeRequest): object {
  if (isGh) return { number, url: url(number), isDraft, body, isCrossRepository: isFork }
  const projects = { source_project_id: isFork ? 6 : 5, target_project_id: 5 }
  return { iid: number, web_url: url(number), draft: isDraft, description: body, ...projects }
}

function create(): void {
  const config = existsSync('.git/config') ? readFileSync('.git/config', 'utf8') : ''
  if (!isGh && !config.includes('https://forge.test/acme/shop')) return
  const request = {
    number: state.requests.length + 7,
    branch: (isGh ? said.head : said['source-branch']) ?? '',
    main: (isGh ? said.base : said['target-branch']) ?? '',
    title: said.title ?? '',
    body: isGh ? input : (said.description ?? ''),
    isDraft: said.draft === 'true',
  }
  state.requests.push(request)
  keep(request)
  writeSync(1, `${url(request.number)}\n`)
}

function change(): void {
  const found = state.requests.find(({ number }) => String(number) === words[0])
  if (found !== undefined && command !== 'pr ready') found.body = isGh ? input : (said.description ?? found.body)
  if (found !== undefined && command === 'pr ready') found.isDraft = said.undo === 'true'
  if (found !== undefined && said.ready === 'true') found.isDraft = false
  if (found !== undefined && said.draft === 'true') found.isDraft = true
  keep(found)
}

function carryOut(): void {
  const branch = said.head ?? said['source-branch']
  if (command === 'auth status') {
    if (said.hostname !== 'forge.test' || !state.isLoggedIn) fail('forge.test\n  X forge.test: authentication failed')
  } else if (command === 'issue view') {
    if (state.issue === null) fail('GraphQL: Could not resolve to an issue or pull request with the number of 9.')
    print(state.issue)
  } else if (command.endsWith(' list')) print(state.requests.filter(each => each.branch === branch).map(listed))
  else if (command.endsWith(' create')) create()
  else change()
}

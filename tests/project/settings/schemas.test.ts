import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Schema, Validator } from '@cfworker/json-schema'
import { expect, test } from 'vitest'
import { schemaText } from '../../../scripts/settings-docs.ts'
import { FILES_WITH_SCHEMA, type FileWithSchema, schemaPath } from '../../../src/base/schemas.ts'
import { readNight } from '../../../src/fleet/night.ts'
import { readFlowFile } from '../../../src/modes/flow/file/file.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { parseToml, tomlTree, tomlValue } from '../../../src/platform/toml.ts'
import { settingInfos } from '../../../src/project/settings/schema.ts'
import { parseTasksFile } from '../../../src/workspace/memory/tasks-file.ts'
import { promise } from '../../support/promise.ts'
import { openSettings } from './settings-places.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const files = Object.keys(FILES_WITH_SCHEMA) as FileWithSchema[]
const schemas = Object.fromEntries(files.map(file => [file, JSON.parse(read(schemaPath(file)))]))

/** Returns why a schema refuses a text; empty: it takes it. */
function refusalsOfSchema(file: FileWithSchema, text: string): string[] {
  const value: unknown = file === 'tasks.json' ? JSON.parse(text) : tomlValue(tomlTree(parseToml(text, { name: file })))
  // An editor hands a date over as a text.
  const plain = JSON.parse(JSON.stringify(value))
  return new Validator(schemas[file] as Schema, '7').validate(plain).errors.map(({ error }) => error)
}

/** Returns the mistake that codemachine names; null: it takes the text. */
async function mistakeOf(file: FileWithSchema, text: string): Promise<string | null> {
  if (file === 'tasks.json') {
    const parsed = parseTasksFile(text)
    return parsed.ok ? null : parsed.problem
  }
  if (file === 'workflow') {
    const found = readFlowFile(text, file, { refusedArgument: () => null, engines: ['claude'] })
    return 'mistakes' in found ? (found.mistakes[0]?.problem ?? '') : null
  }
  if (file === 'night.toml') {
    const checks = { templates: OWN_TEMPLATES, secretIn: () => null, now: Date.now() }
    const found = readNight(text, { file, path: '/nowhere/night.toml', checks })
    return await found.then(
      () => null,
      (error: Error) => error.message,
    )
  }
  await using settings = await openSettings()
  await (file === 'config.toml' ? settings.person(text) : settings.project(text))
  const sentence = await settings.sentence()
  return sentence === 'no error' ? null : sentence
}

const examples = globSync('docs/{guides,reference}/*.md', { cwd: root }).flatMap(page =>
  [...read(page).matchAll(/^( *)```toml\n(.*?)^ *```/gms)].map(([, , text = '']) => ({ page, text })),
)
/** Lines for a table that the text above them names, and the file of another program. */
const PARTS = /^# (?:Linux desktop|ntfy\.sh|Slack|~\/\.codex\/)/

function fileOfExample({ page, text }: { page: string; text: string }): FileWithSchema {
  if (page.includes('workflow')) return 'workflow'
  return text.startsWith('# night.toml') ? 'night.toml' : 'config.toml'
}

test.each(files)('the schema of %s in the package is made from what checks that file', file => {
  expect(read(schemaPath(file))).toBe(schemaText(file))
})

test('the schema of config.toml has all settings, each with its meaning, and its defaults are right by it', () => {
  const described = settingInfos.map(({ toml }) => {
    const path = toml.split('.').flatMap(name => ['properties', name])
    return path.reduce((json, name) => json?.[name], schemas['config.toml'])
  })
  for (const each of described) {
    expect(each.description).toMatch(/^[A-Z'].{20,}/)
    if (each.default !== undefined) expect(new Validator(each, '7').validate(each.default).errors).toEqual([])
  }
  expect(described.filter(each => each.default !== undefined).length).toBeGreaterThan(30)
})

test('every example of the docs, and every file of the shipped workflows and of earlier records, is right by its schema', () => {
  const whole = examples.filter(({ text }) => !PARTS.test(text))
  const found: [FileWithSchema, string][] = [
    ...whole.map((each): [FileWithSchema, string] => [fileOfExample(each), each.text]),
    ...globSync('prompts/flow/**/*.toml', { cwd: root }).map((path): [FileWithSchema, string] => [
      'workflow',
      read(path),
    ]),
    ...globSync('tests/data/**/{codemachine,config}.toml', { cwd: root }).map((path): [FileWithSchema, string] => [
      path.endsWith('config.toml') ? 'config.toml' : 'codemachine.toml',
      read(path),
    ]),
    ...globSync('{demo,tests/data}/**/tasks.json', { cwd: root }).map((path): [FileWithSchema, string] => [
      'tasks.json',
      read(path),
    ]),
  ]
  expect(Object.keys(Object.groupBy(found, ([file]) => file)).sort()).toEqual([...files].sort())
  for (const [file, text] of found) expect([text, ...refusalsOfSchema(file, text)]).toEqual([text])
})

const TASK = '{ "id": "T1", "name": "build it", "done": false }'
const SESSION = '[[sessions]]\ngoal = "x"\nrepo = "git@host:team/app.git"\n'
const STEP = '[[workflow.steps]]\nrun = "npm test"\n'

promise('O142', 'The JSON Schema of a file never marks what codemachine takes as a mistake')
test('no schema is stricter than codemachine, whatever the example', async () => {
  const right: [FileWithSchema, string][] = [
    ['config.toml', ''],
    ['config.toml', 'fallback = "claude,gemini,opencode"\nmax_tokens = "500k"\nmax_usage = "90 %"\n'],
    ['config.toml', '[notify]\ncommand = ["C:\\\\bin\\\\tell.exe"]\n[mcp]\ndirs = ["D:\\\\Shop"]\n'],
    ['config.toml', '[engines.mine]\ncommand = ["a"]\nhome = ["C:\\\\me"]\nnetwork = ["API.Example.COM"]\n'],
    ['config.toml', '[agents.frontend-dev]\nprompt = "Agents/C.md"\n[agents]\nat_once = 2\n'],
    ['config.toml', '[keys]\ndiff = "alt+g"\n[prices."gpt-5.5"]\nin = 0\nout = 0.5\n'],
    ['config.toml', 'notify.webhook = "HTTPS://EXAMPLE.ORG/hook"\n'],
    ['codemachine.toml', 'mode = "goal"\nrounds = 3\nkeep_awake = false\n'],
    ['codemachine.toml', '[[gates]]\nrun = "npm test"\nprotect = ["Tests/**"]\n[hooks.on_end]\nrun = "true"\n'],
    ['workflow', STEP],
    ['workflow', `name = "ü"\n[agents."a b.c"]\nprompt = "p.md"\n${STEP}[vars]\nn = 1\nb = true\nd = { run = "ls" }\n`],
    ['night.toml', SESSION],
    ['night.toml', `${SESSION}not_before = ${new Date(Date.now() + 86_400_000).toISOString()}\nmax_time = "4h"\n`],
    ['tasks.json', `{ "tasks": [${TASK}], "more": 1 }`],
    ['tasks.json', '{ "tasks": [{ "id": "T1", "name": "x", "done": true, "phase": 3, "details": null }] }'],
  ]
  for (const [file, text] of right) expect([text, await mistakeOf(file, text)]).toEqual([text, null])
  const tried: [FileWithSchema, string][] = examples.flatMap(({ text }) =>
    files.filter(file => file !== 'tasks.json').map((file): [FileWithSchema, string] => [file, text]),
  )
  for (const [file, text] of [...right, ...tried]) {
    if ((await mistakeOf(file, text)) !== null) continue
    expect([file, text, ...refusalsOfSchema(file, text)]).toEqual([file, text])
  }
})

// The last column: whether the schema sees it, too. What it cannot say, its descriptions do.
test.each<[FileWithSchema, string, string, boolean]>([
  ['config.toml', 'an unknown key', 'round = 3\n', true],
  ['config.toml', 'a text in place of a number', 'rounds = "3"\n', true],
  ['config.toml', 'a number that is too large', 'rounds = 100001\n', true],
  ['config.toml', 'a word that is none of the list', 'sandbox = "none"\n', true],
  ['config.toml', 'an unknown key of a table', '[notify]\nbel = true\n', true],
  ['config.toml', 'a table that is a text', 'notify = "x"\n', true],
  ['config.toml', 'an address that is none', '[notify]\nwebhook = "example.org"\n', false],
  ['config.toml', 'a price without out', '[prices.x]\nin = 1\n', true],
  ['config.toml', 'a provider with a wrong name', '[providers.Local]\nmodel = "x"\n', true],
  ['config.toml', 'a time that is none', 'max_time = "soon"\n', false],
  ['config.toml', 'a size that is too small', 'max_file_size = "1k"\n', false],
  ['config.toml', 'a provider without a table', 'provider = "mine"\n', false],
  ['config.toml', 'an agent with a wrong name', '[agents.Wrong_name]\nenabled = true\n', false],
  ['codemachine.toml', 'what only a person may set', '[notify]\nwebhook = "https://example.org"\n', true],
  ['codemachine.toml', 'a part that only a person may set', '[worktree]\ncopy = [".env"]\n', true],
  ['codemachine.toml', 'prices', '[prices.x]\nin = 1\nout = 1\n', true],
  ['codemachine.toml', 'a gate without a command', '[[gates]]\nname = "x"\n', true],
  ['codemachine.toml', 'one gate in place of a list', '[gates]\nrun = "x"\n', true],
  ['codemachine.toml', 'a hook of no moment', '[hooks.on_start]\nrun = "x"\n', true],
  ['codemachine.toml', 'a blank command', '[[gates]]\nrun = " "\n', true],
  ['codemachine.toml', 'a looser sandbox', 'sandbox = "danger-full-access"\n', false],
  ['codemachine.toml', 'a gate that takes too long', '[[gates]]\nrun = "x"\ntimeout = "24h"\n', false],
  ['workflow', 'no prompt of an agent', `[agents.a]\nmodel = "x"\n${STEP}`, true],
  ['workflow', 'an unknown key of a step', `${STEP}comand = "x"\n`, true],
  ['workflow', 'too many retries', `${STEP}retries = 9\n`, true],
  ['workflow', 'a variable that is a list', `${STEP}[vars]\nx = []\n`, true],
  ['workflow', 'no steps', '[workflow]\ndescription = "x"\n', true],
  ['workflow', 'a step that does nothing', '[[workflow.steps]]\ndescription = "x"\n', false],
  ['workflow', 'an agent without a table', '[[workflow.steps]]\nagent = "x"\n', false],
  ['workflow', 'a reference in a command', '[[workflow.steps]]\nrun = "echo {{diff}}"\n', false],
  ['night.toml', 'no sessions', '[defaults]\nrounds = 3\n', true],
  ['night.toml', 'a name among the defaults', `[defaults]\nname = "x"\n${SESSION}`, true],
  ['night.toml', 'a priority that is too high', `${SESSION}priority = 5000\n`, true],
  ['night.toml', 'a tag with a space', `${SESSION}tags = ["g pu"]\n`, true],
  ['night.toml', 'no goal', '[[sessions]]\nrepo = "git@host:team/app.git"\n', false],
  ['night.toml', 'a time that is none', `${SESSION}deadline = "noon"\n`, false],
  ['night.toml', 'a session after one that is not there', `${SESSION}after = "x"\n`, false],
  ['tasks.json', 'no list', '{ "task": [] }', true],
  ['tasks.json', 'a text in place of true', '{ "tasks": [{ "id": "T1", "name": "x", "done": "yes" }] }', true],
  ['tasks.json', 'a blank name', '{ "tasks": [{ "id": "T1", "name": " \\n", "done": true }] }', true],
  ['tasks.json', 'one id twice', `{ "tasks": [${TASK}, ${TASK}] }`, false],
])('codemachine refuses %s with %s', async (file, _, text, isSeen) => {
  expect(await mistakeOf(file, text)).toMatch(/\S/)
  expect(refusalsOfSchema(file, text).length > 0).toBe(isSeen)
})

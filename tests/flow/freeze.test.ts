import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { FileStep, FileVariable, FlowFile, Placed } from '../../src/flow/file.ts'
import { type FreezeOptions, freeze } from '../../src/flow/freeze.ts'

const FILE = '.codex-flow/workflows/commit.workflow.toml'
const PROMPT = 'prompts/commit.md'

/** A project with files, a real directory that is removed in the end. */
async function makeProject(files: Readonly<Record<string, string | Buffer>> = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-flow-')))
  const project = {
    root,
    write: async (path: string, content: string | Buffer) => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), content)
    },
    link: async (path: string, target: string) => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await symlink(target, join(root, path))
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
  await project.write(FILE, '')
  for (const [path, content] of Object.entries(files)) await project.write(path, content)
  return project
}

const placed = <T>(value: T, place = 'agents.commit.prompt', line = 3, column = 10): Placed<T> => ({
  value,
  place,
  line,
  column,
})

interface StepWords {
  prompt?: string
  schema?: string
  output?: { path: string; append?: boolean }
  variables?: readonly string[]
}

/** A workflow file as its reader gives it. */
function fileOf(steps: readonly StepWords[], vars: Readonly<Record<string, FileVariable>> = {}): FlowFile {
  const fileSteps = steps.map(({ prompt = 'prompts/commit.md', schema, output, variables = [] }, at): FileStep => {
    const place = `workflow.steps[${at}]`
    const line = 10 * (at + 1)
    return {
      place,
      line,
      column: 1,
      index: at + 1,
      id: `step-${at + 1}`,
      stem: `step-${at + 1}`,
      description: null,
      work: {
        kind: 'agent',
        agent: 'commit',
        engine: 'codex',
        model: null,
        args: [],
        prompt: placed(prompt),
        input: placed(
          variables.map(variable => ({ variable })),
          `${place}.input.template`,
          line + 2,
          15,
        ),
        schema: schema === undefined ? null : placed(schema, `${place}.schema`, line + 1, 12),
        rounds: 10,
      },
      verify: [],
      retries: 0,
      approve: false,
      timeoutMs: null,
      when: null,
      readOnly: false,
      output:
        output === undefined
          ? { kind: 'stdout' }
          : {
              kind: 'file',
              path: placed(output.path, `${place}.output.path`, line + 5, 12),
              append: output.append ?? false,
            },
      variables: variables.map((name, nth) => placed(name, `${place}.input.template`, line + 2, 20 + nth)),
    }
  })
  return {
    file: FILE,
    form: 'newer',
    mock: true,
    engines: { codex: { bin: null, args: [] }, codemachine: { bin: null, args: [] } },
    workflows: [{ place: 'workflow', line: 8, column: 1, name: 'commit_flow', description: null, steps: fileSteps }],
    vars: new Map(Object.entries(vars).map(([name, value], at) => [name, placed(value, `vars.${name}`, 900 + at, 1)])),
  }
}

function freezeIn(root: string, file: FlowFile, options: Partial<FreezeOptions> = {}) {
  const [workflow] = file.workflows
  if (workflow === undefined) throw new Error('The file has no workflow')
  return freeze(file, workflow, {
    root,
    source: { path: join(root, FILE), sha256: 'f'.repeat(64) },
    given: new Map(),
    runValue: null,
    secretIn: () => null,
    signal: new AbortController().signal,
    ...options,
  })
}

async function frozen(...[root, file, options]: Parameters<typeof freezeIn>) {
  const result = await freezeIn(root, file, options)
  if ('mistakes' in result) throw new Error(JSON.stringify(result.mistakes))
  return result
}

async function mistakes(...[root, file, options]: Parameters<typeof freezeIn>) {
  const result = await freezeIn(root, file, options)
  if (!('mistakes' in result)) throw new Error('There are no mistakes')
  return result.mistakes.map(
    ({ file, line, column, place, problem }) => `${file}:${line}:${column}: ${place}: ${problem}`,
  )
}

describe('a prompt', () => {
  test('is looked for beside the file, then in the .codex-flow above it, then in the root of the project', async () => {
    await using project = await makeProject({ 'prompts/commit.md': 'root' })
    const found = async () => {
      const { plan } = await frozen(project.root, fileOf([{}]))
      const work = plan.steps[0]?.work
      return work?.kind === 'agent' ? work.prompt : null
    }
    expect(await found()).toEqual({ path: 'prompts/commit.md', found: 'prompts/commit.md', text: 'root' })
    await project.write('.codex-flow/prompts/commit.md', 'flow')
    expect(await found()).toMatchObject({ found: '.codex-flow/prompts/commit.md', text: 'flow' })
    await project.write('.codex-flow/workflows/prompts/commit.md', 'beside')
    expect(await found()).toMatchObject({ found: '.codex-flow/workflows/prompts/commit.md', text: 'beside' })
  })

  test.each([
    [
      'that is not there',
      {},
      `there is no prompt "${PROMPT}" in .codex-flow/workflows, .codex-flow or the project's root; write it, or mend the path`,
    ],
    [
      'with a name that is nearly right',
      { 'prompts/comit.md': 'x' },
      `there is no prompt "${PROMPT}" in .codex-flow/workflows, .codex-flow or the project's root; did you mean "prompts/comit.md"?`,
    ],
    ['that is empty', { [PROMPT]: ' \n' }, `"${PROMPT}" is empty; write the prompt`],
    [
      'that is binary',
      { [PROMPT]: Buffer.from([0x50, 0, 0x4b]) },
      `"${PROMPT}" is not text (UTF-8); a prompt is a text file`,
    ],
    [
      'that is not UTF-8',
      { [PROMPT]: Buffer.from([0x66, 0xfc, 0x72]) },
      `"${PROMPT}" is not text (UTF-8); a prompt is a text file`,
    ],
    [
      'of 5 MB',
      { [PROMPT]: Buffer.alloc(5_000_000, 'x') },
      `"${PROMPT}" has 4.8 MiB, and a prompt may have at most 1.0 MiB; make it shorter`,
    ],
    [
      'that is a folder',
      { [`${PROMPT}/x`]: 'x' },
      `"${PROMPT}" cannot be read as a prompt: it is not a regular file; write a file in its place`,
    ],
  ])('%s is a mistake with its place, once for all its steps', async (_, files, problem) => {
    await using project = await makeProject(files)
    expect(await mistakes(project.root, fileOf([{}, {}]))).toEqual([`${FILE}:3:10: agents.commit.prompt: ${problem}`])
  })
})

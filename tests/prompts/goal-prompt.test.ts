import { encode } from 'gpt-tokenizer'
import { describe, expect, it } from 'vitest'
import { loadAgents } from '../../src/agents/agent.ts'
import { loadPrompt } from '../../src/base/package.ts'
import { NO_KEPT_TEXTS } from '../../src/core/template.ts'
import { goalKind } from '../../src/modes/goal/goal.ts'
import { withPaths } from '../../src/session/round-input.ts'
import { parseTasksFile } from '../../src/workspace/memory/tasks-file.ts'

const directory = '/home/someone/projects/app'
const home = `${directory}/.codemachine`
const folder = `${home}/projects/20261120_1`
const memory = { main: `${folder}/MAIN.md`, tasks: `${folder}/tasks.json`, kb: `${home}/kb` }

/** What the agent of a goal is told whose memory lies there. */
async function instructionsWith(more: Partial<typeof memory> = {}): Promise<string> {
  const setup = {
    directory,
    memory: { ...memory, ...more },
    scopeFolder: () => memory,
    agents: loadAgents(),
    isPlanReady: false,
    tell: () => {},
    kept: NO_KEPT_TEXTS,
  }
  const { threads } = await goalKind.open(setup)
  return threads[0]?.thread.developerInstructions ?? ''
}

const instructions = await instructionsWith()

describe('the instructions for a goal', () => {
  it('cost at most 1,200 tokens', () => {
    expect(encode(instructions).length).toBeLessThanOrEqual(1_200)
  })

  it('name the files, relative to the work directory', () => {
    expect(instructions).toContain('`.codemachine/projects/20261120_1/MAIN.md`')
    expect(instructions).toContain('`.codemachine/projects/20261120_1/tasks.json`')
    expect(instructions).toContain('`.codemachine/kb/`')
    expect(instructions).toContain(`\`${directory}\``)
    expect(instructions).not.toMatch(/\{\{|\}\}/)
  })

  it('name a file outside the work directory by its whole path', async () => {
    expect(await instructionsWith({ kb: '/home/someone/kb' })).toContain('`/home/someone/kb/`')
    expect(await instructionsWith({ kb: `${directory}/..kb` })).toContain('`..kb/`')
  })

  it('never speak of rounds, budgets or limits', () => {
    expect(instructions).not.toMatch(
      /\b(rounds?|budgets?|limits?|limited|tokens?|turns?|remaining|attempts?|iterations?|hours?|minutes?|deadline)\b/i,
    )
  })

  it('show a tasks.json that is a good one', () => {
    const example = /```json\n(.*?)```/s.exec(instructions)?.[1] ?? ''
    expect(parseTasksFile(example.replace('Planning|Building|Testing|Runtime', 'Building'))).toEqual({
      ok: true,
      value: [{ id: 'T1', name: '…', phase: 'Building', done: false }],
    })
  })

  it('name every key of the front matter', () => {
    for (const key of ['status', 'finite_incantatem', 'short_title', 'git_commit', 'git_branch']) {
      expect(instructions).toContain(`\`${key}\``)
      expect(loadPrompt('MAIN.template')).toContain(`\n${key}: `)
    }
  })

  it('are never given with a placeholder left', () => {
    expect(() => withPaths(`${loadPrompt('goal')} {{ round }}`, { directory, memory })).toThrow(
      'No value for the placeholder {{ round }}',
    )
    expect(() => withPaths(`${loadPrompt('goal')} {{toString}}`, { directory, memory })).toThrow('{{toString}}')
  })

  it('keep what looks like a placeholder in a path', () => {
    expect(
      withPaths('{{directory}} {{ main }}', {
        directory: '/a/{{main}}$&',
        memory: { ...memory, main: '/a/{{main}}$&/M' },
      }),
    ).toBe('/a/{{main}}$& M')
  })
})

import { expect, test } from 'vitest'
import { cleanResult } from '../../src/agents/agent-memory.ts'
import { cpuMs } from '../support/cpu-time.ts'

const HEADER = `OpenAI Codex v0.169.0
--------
workdir: /home/someone/app
model: gpt-5-codex
session id: 01a200c7-83e8-70b0-84c6-d83e190ae84d
--------
user
You are a frontend developer.

User Request:
Do it.`

test.each<[string, string, string]>([
  [
    'an answer stays as it is',
    'Done.\n\n1. a.txt\n2. b.txt  (two  spaces)\n',
    'Done.\n\n1. a.txt\n2. b.txt  (two  spaces)',
  ],
  [
    'of a transcript only the last answer is left',
    `Reading additional input from stdin...\n${HEADER}\ncodex\nI look first.\nexec\nls in /home/someone/app\n succeeded in 0ms:\na.txt\n\ncodex\nDone.\n\nFiles: a.txt\ntokens used\n20,019\n`,
    'Done.\n\nFiles: a.txt',
  ],
  [
    'of an older transcript too',
    '[2025-09-01T10:00:00] OpenAI Codex v0.30.0\n--------\nworkdir: /a\n--------\n[2025-09-01T10:00:01] codex\nDone.\n[2025-09-01T10:00:02] tokens used: 1,234',
    'Done.',
  ],
  [
    'of a transcript without an answer, what stands below its header is left',
    'OpenAI Codex v0.169.0\n--------\nmodel: x\n--------\nERROR: no credit left',
    'ERROR: no credit left',
  ],
  [
    'a header that is quoted is none',
    'It printed:\nOpenAI Codex v0.1.0\nand stopped.\ncodex\n',
    'It printed:\nOpenAI Codex v0.1.0\nand stopped.\ncodex',
  ],
  [
    'a transcript that is quoted is none',
    'It printed, after\n1\n2\n3\n4\n5\nOpenAI Codex v0.1.0\n--------\nmuch, then\ncodex\nthis.',
    'It printed, after\n1\n2\n3\n4\n5\nOpenAI Codex v0.1.0\n--------\nmuch, then\ncodex\nthis.',
  ],
  ['colours go', '\u001B[1mDone\u001B[0m.\r\n', 'Done.'],
  [
    'a citation becomes a file and its line',
    'See 【F:src/a.ts†L10-L12】 and【F:b.md†L3】.',
    'See (src/a.ts:10) and (b.md:3).',
  ],
  ['what is for an app of codex goes', 'Done.\n\n::git-stage{cwd="/a"}\n::git-commit{cwd="/a"}\n', 'Done.'],
  [
    'what it says of its own memories goes',
    'Done.\n<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2\n</citation_entries>\n</oai-mem-citation>\n',
    'Done.',
  ],
  ['a mark that is not closed stays', 'Done. <oai-mem-citation> and more', 'Done. <oai-mem-citation> and more'],
])('%s', (_, text, cleaned) => {
  expect(cleanResult(text)).toBe(cleaned)
})

test('a megabyte of half-open marks is cleaned at once', () => {
  const started = cpuMs()
  for (const mark of ['【F:', '【F:a†L1', '<oai-mem-citation>', '::a{', '\ntokens used ', '\n[x'])
    cleanResult(mark.repeat(1_000_000 / mark.length))
  expect(cpuMs() - started).toBeLessThan(5000)
})

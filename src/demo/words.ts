import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { applyPatch, message, type ReplyItem, reasoning, shell as runShell, type updatePlan } from './model/reply.ts'

/** A command without a login shell, which may set a PATH without the node that runs the demo. */
export function shell(cmd: string): ReplyItem {
  return runShell(cmd, { login: false })
}

/** Something that the model says on the way. */
export function say(text: string): ReplyItem {
  return message(text, { phase: 'commentary', chunkSize: demoChunkSize })
}

/** The model's last words of a turn. */
export function conclude(text: string): ReplyItem {
  return message(text, { phase: 'final_answer', chunkSize: demoChunkSize })
}

/** What the model thinks. */
export function think(text: string): ReplyItem {
  return reasoning(text, { chunkSize: demoChunkSize })
}

/** Steps of a plan for `updatePlan`, of which the first ones are done. */
export function steps(done: number, ...names: readonly string[]): Parameters<typeof updatePlan>[0] {
  return names.map((step, index) => {
    if (index < done) return { step, status: 'completed' }
    return { step, status: index === done ? 'in_progress' : 'pending' }
  })
}

/** About a word, so that text flows where somebody watches. */
const demoChunkSize = 8

/** One file of a patch. */
export type PatchedFile = readonly string[]

/** A patch of these files, applied by codex. */
export function patch(...files: readonly PatchedFile[]): ReplyItem {
  return applyPatch(['*** Begin Patch', ...files.flat(), '*** End Patch'].join('\n'))
}

/** A new file with this text. */
export function addFile(path: string, text: string): PatchedFile {
  return [`*** Add File: ${path}`, ...linesOf(text).map(line => `+${line}`)]
}

/** A changed file; each hunk is lines that start with ` `, `-` or `+`, a blank line standing for an empty context line. */
export function updateFile(path: string, ...hunks: readonly string[]): PatchedFile {
  const marked = hunks.flatMap(hunk => ['@@', ...linesOf(hunk).map(line => (line === '' ? ' ' : line))])
  return [`*** Update File: ${path}`, ...marked]
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n')
}

/**
 * Makes a git repository for a demo in `directory`, which has to be empty or missing: these files (by their names) in
 * one commit, and an identity of its own, so that commits need nothing of the person's. `env` is what git runs with.
 */
export async function createRepository(
  directory: string,
  commit: { files: Readonly<Record<string, string>>; message: string },
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const git = async (...args: readonly string[]) => {
    await promisify(execFile)('git', [...args], { cwd: directory, env })
  }
  await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(commit.files)) await writeFile(join(directory, name), text)
  await git('init', '--quiet', '--initial-branch=main', '--template=')
  for (const [key, value] of Object.entries(ownSettings)) await git('config', '--local', key, value)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', commit.message)
}

/** What a person's own git configuration could otherwise change about the demo's commits. */
const ownSettings = {
  'user.name': 'codemachine demo',
  'user.email': 'demo@localhost',
  'commit.gpgSign': 'false',
  'core.hooksPath': '.git/hooks',
  'core.autocrlf': 'false',
}

/** Where the session that is shown keeps its memory; paths as codex was told them. */
export interface DemoMemory {
  main: string
  tasks: string
  kb: string
}

/** Finds the session's folder in the developer messages of a request; null if they name none. */
export function findMemory(developerTexts: readonly string[]): DemoMemory | null {
  const found = /([^\s`'"]*\.codemachine)\/projects\/[^\s`'"/]+(?=\/MAIN\.md)/.exec(developerTexts.join('\n'))
  if (found?.[1] === undefined) return null
  return { main: `${found[0]}/MAIN.md`, tasks: `${found[0]}/tasks.json`, kb: `${found[1]}/kb` }
}

/** The first `tasks.json`: nothing is done yet. */
export const firstTasksText = `${JSON.stringify(
  {
    tasks: [
      {
        id: 'T1',
        name: 'Find the links in a Markdown text',
        details: 'Links and images with their line numbers. What stands in code is no link.',
        acceptanceCriteria: 'node --test passes, with a test for links in code.',
        phase: 'Building',
        done: false,
        subtasks: [],
      },
      {
        id: 'T2',
        name: 'Check the files that links point to',
        details: 'bin/linkcheck.js FILE.md ... prints a line for each broken link.',
        acceptanceCriteria: 'A test runs the command: exit code 1, and the place of the broken link.',
        phase: 'Building',
        done: false,
        subtasks: [],
      },
      {
        id: 'T3',
        name: 'Check the headings that links point to',
        details: 'Anchors as GitHub makes them, in the same file and in others.',
        acceptanceCriteria: 'node --test passes, with tests for repeated and missing headings.',
        phase: 'Building',
        done: false,
        subtasks: [],
      },
      {
        id: 'T4',
        name: 'Write the README',
        details: 'How to use and test it, and what it leaves out.',
        acceptanceCriteria: 'node bin/linkcheck.js README.md finds no broken link.',
        phase: 'Testing',
        done: false,
        subtasks: [],
      },
    ],
  },
  null,
  2,
)}\n`

/** The plan, written into a fresh `MAIN.md`. */
export function planEntries(memory: DemoMemory): PatchedFile {
  return updateFile(
    memory.main,
    `+- [ ] T1 Find the links in a Markdown text. Next: its tests
+
 ## Todo

+- [ ] T2 Check the files that links point to
+- [ ] T3 Check the headings that links point to
+- [ ] T4 Write the README
+
 ## Done
`,
  )
}

/** `MAIN.md` once T1 and T2 are done. */
export function entriesAfterCore(memory: DemoMemory): PatchedFile {
  return updateFile(
    memory.main,
    `-- [ ] T1 Find the links in a Markdown text. Next: its tests
+- [ ] T3 Check the headings that links point to. Next: src/anchors.js

 ## Todo

-- [ ] T2 Check the files that links point to
-- [ ] T3 Check the headings that links point to
 - [ ] T4 Write the README

 ## Done
+
+- [x] T1 Find the links in a Markdown text
+- [x] T2 Check the files that links point to
`,
  )
}

/** `MAIN.md` once all four tasks are done. */
export function entriesAfterRest(memory: DemoMemory): PatchedFile {
  return updateFile(
    memory.main,
    `-- [ ] T3 Check the headings that links point to. Next: src/anchors.js
-
 ## Todo

-- [ ] T4 Write the README
-
 ## Done

 - [x] T1 Find the links in a Markdown text
 - [x] T2 Check the files that links point to
+- [x] T3 Check the headings that links point to
+- [x] T4 Write the README
`,
  )
}

/** `MAIN.md` with these finished too. */
export function doneEntries(memory: DemoMemory, ...entries: readonly string[]): PatchedFile {
  return updateFile(memory.main, ` ## Done\n+\n${entries.map(entry => `+- [x] ${entry}`).join('\n')}\n`)
}

const claim = `-finite_incantatem: false
+finite_incantatem: true
`

/** The claim that the goal is reached. */
export function claimDone(memory: DemoMemory): PatchedFile {
  return updateFile(memory.main, claim)
}

/** The same claim, with what the review has found and mended. */
export function claimDoneAfterReview(memory: DemoMemory): PatchedFile {
  const entry = ` - [x] T4 Write the README
+- [x] T5 Understand percent-encoded names
`
  return updateFile(memory.main, claim, entry)
}

/** `tasks.json` with these tasks done. */
export function markDone(memory: DemoMemory, ...ids: readonly string[]): PatchedFile {
  return [
    `*** Update File: ${memory.tasks}`,
    ...ids.flatMap(id => [`@@       "id": "${id}",`, '-      "done": false,', '+      "done": true,']),
  ]
}

/** `tasks.json` with the task that the review added, and finished. */
export function addReviewTask(memory: DemoMemory): PatchedFile {
  return updateFile(
    memory.tasks,
    `-    }
+    },
+    {
+      "id": "T5",
+      "name": "Understand percent-encoded names",
+      "details": "my%20notes.md is the file 'my notes.md'.",
+      "acceptanceCriteria": "node --test passes, with a test for it.",
+      "phase": "Testing",
+      "done": true,
+      "subtasks": []
+    }
   ]
 }
`,
  )
}

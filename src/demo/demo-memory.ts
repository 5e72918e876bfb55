import { type PatchedFile, updateFile } from './demo-patch.ts'

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

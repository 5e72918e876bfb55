import { addFile, claimDone, conclude, markDone, patch, planSteps, say, shell, think } from './actions.ts'
import { type ReplyItem, reply, roundsScript, type Script, type ScriptStep, updatePlan } from './model/reply.ts'
import { createRepository, findSessionPaths, projectSources, type SessionPaths } from './project.ts'

const sources = projectSources('linkcheck')

/** The goal of the demo's session. */
export const demoGoal = `Build linkcheck, a command that finds the links in Markdown files that lead nowhere: to missing files, and to missing headings.
It prints the file and line of each, and its exit code tells whether there are any. Plain JavaScript, no dependencies,
with tests for node --test and a short README.`

/**
 * The script of the demo in five rounds: plan, core, rest, a review whose done claim is refused, and a second look
 * whose claim is accepted. The developer instructions of each conversation have to name the session's `MAIN.md`.
 * `watchable` sends text at reading speed.
 */
export function demoScript(pace: 'instant' | 'watchable'): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  return roundsScript(demoRounds.map(round => round.map(step => scriptStep(step, deltaMs))))
}

function scriptStep(step: DemoStep, deltaMs: number): ScriptStep {
  return request => {
    const memory = findSessionPaths(request.developerTexts)
    if (memory === null) throw new Error('the developer instructions name no .codemachine/projects/<id>/MAIN.md')
    return { ...reply(...step(memory)), deltaMs }
  }
}

/**
 * Creates the git repository of the demo in `directory`, which has to be empty or missing: an idea in one commit.
 * `env`: the environment of git.
 */
export async function createDemoRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(
    directory,
    { files: { 'IDEA.md': sources.text('IDEA.md') }, message: 'Write down the idea' },
    env,
  )
}

/**
 * One step of a round: the reply's items, with at most one command or patch. Codex runs the calls of a step side by
 * side, and of two sandboxed commands that start at once in one directory, one can fail.
 */
type DemoStep = (memory: SessionPaths) => readonly ReplyItem[]

/** The first round: a plan and a first commit. */
const planning: readonly DemoStep[] = [
  memory => [
    say('I begin without memory, so I read what is there.'),
    shell(`cat ${memory.main} ${memory.tasks}; ls ${memory.kb}`),
  ],
  () => [shell('git log --oneline; git status --short; ls; cat IDEA.md')],
  memory => [
    think(
      '**Planning**\n\nNothing is built yet. Two halves: find links in text, then check what they point to. No dependencies.',
    ),
    updatePlan(planSteps(0, 'Write the tasks', 'Set up the package', 'Commit'), 'First a plan that can be checked.'),
    shell(
      `cat > ${memory.tasks} <<'EOF'\n${sources.text('codemachine/session/tasks.json')}EOF\nnode -p "JSON.parse(fs.readFileSync('${memory.tasks}')).tasks.length + ' tasks'"`,
    ),
  ],
  memory => [patch(sources.update(memory.main, 'codemachine/session/MAIN.planned.patch'))],
  () => [
    updatePlan(planSteps(1, 'Write the tasks', 'Set up the package', 'Commit')),
    patch(sources.add('package.json'), addFile('.gitignore', 'build/\n')),
  ],
  () => [
    shell('git add -A && git commit -qm "Set up the package" && git log --oneline'),
    updatePlan(planSteps(3, 'Write the tasks', 'Set up the package', 'Commit')),
  ],
  () => [conclude('The plan is in tasks.json: four tasks, each with a check. Next is T1, finding the links.')],
]

/** The second round: the core, with a test that fails before it passes. */
const building: readonly DemoStep[] = [
  memory => [
    say('I read the plan and look at the work.'),
    shell(`cat ${memory.main} ${memory.tasks}; git log --oneline; git status --short; ls`),
  ],
  () => [
    think(
      '**Tests first**\n\nT1 says that what stands in code is no link. I write that as a test before I trust any pattern.',
    ),
    updatePlan(planSteps(0, 'T1: find links', 'T2: check files', 'Try it as a person would')),
    patch(sources.add('src/links.js'), sources.add('test/links.test.js')),
  ],
  () => [shell('node --test')],
  () => [say('It fails. I run that file alone, to see why.'), shell('node test/links.test.js')],
  () => [
    think(
      '**A real failure**\n\nThe pattern finds links in code, as the test said it must not. The cause is that lines are read without knowing where they stand. I will not weaken the test; the reading of lines becomes a part of its own.',
    ),
    say('The test is right and the code is wrong: code has to be left out before links are searched for.'),
    patch(sources.add('src/prose.js'), sources.update('src/links.js', 'src/links.leave-out-code.patch')),
  ],
  () => [shell('node --test')],
  () => [
    updatePlan(planSteps(1, 'T1: find links', 'T2: check files', 'Try it as a person would')),
    patch(
      sources.add('src/check.js'),
      sources.add('src/main.js'),
      sources.add('bin/linkcheck.js'),
      sources.add('test/check.test.js'),
    ),
  ],
  () => [shell('node --test')],
  () => [
    updatePlan(planSteps(2, 'T1: find links', 'T2: check files', 'Try it as a person would')),
    say('All pass. Now from a copy, as though it had been installed.'),
    shell('mkdir -p build && cp -R bin src package.json build && node build/bin/linkcheck.js IDEA.md'),
  ],
  () => [shell('rm -rf build')],
  memory => [
    updatePlan(planSteps(3, 'T1: find links', 'T2: check files', 'Try it as a person would')),
    patch(markDone(memory, 'T1', 'T2'), sources.update(memory.main, 'codemachine/session/MAIN.core-done.patch')),
  ],
  () => [shell('git add -A && git commit -qm "Find links and check the files they point to" && git status --short')],
  () => [
    conclude('T1 and T2 are done: links are found, links in code are not, and missing files are reported. Next is T3.'),
  ],
]

/** The third round: the rest. All tasks are then done, but this round has changed files. */
const finishing: readonly DemoStep[] = [
  memory => [shell(`cat ${memory.main} ${memory.tasks}; git log --oneline`)],
  () => [shell('cat src/*.js; node --test')],
  () => [
    think(
      '**Headings**\n\nGitHub makes an anchor from a heading: lower case, no punctuation, spaces to hyphens, and a number for repeats. Headings in code must not count, and src/prose.js knows code already.',
    ),
    updatePlan(planSteps(0, 'T3: check headings', 'T4: README', 'Note for later')),
    patch(
      sources.add('src/anchors.js'),
      sources.update('src/check.js', 'src/check.headings.patch'),
      sources.update('test/check.test.js', 'test/check.test.headings.patch'),
    ),
  ],
  () => [shell('node --test')],
  () => [
    updatePlan(planSteps(1, 'T3: check headings', 'T4: README', 'Note for later')),
    patch(sources.add('README.md')),
  ],
  () => [shell('node bin/linkcheck.js README.md IDEA.md')],
  memory => [
    updatePlan(planSteps(2, 'T3: check headings', 'T4: README', 'Note for later')),
    patch(sources.add(`${memory.kb}/testing.md`, 'codemachine/kb/testing.md')),
  ],
  () => [
    updatePlan(planSteps(3, 'T3: check headings', 'T4: README', 'Note for later')),
    shell('git add -A && git commit -qm "Check headings, and say in the README how to use it" && git status --short'),
  ],
  memory => [
    patch(markDone(memory, 'T3', 'T4'), sources.update(memory.main, 'codemachine/session/MAIN.all-done.patch')),
  ],
  () => [conclude('All four tasks are done, and the tests pass.')],
]

/** The fourth round: a review that finds and fixes a defect, so that its done claim is refused. */
const reviewing: readonly DemoStep[] = [
  memory => [
    say('Somebody says that all is done. I look as though a stranger had built it.'),
    shell(`cat ${memory.main} ${memory.kb}/*.md; git log --oneline; git status --short`),
  ],
  () => [shell('node --test')],
  () => [
    think(
      '**What would break it?**\n\nThe tests pass, but every file name in them is plain. Editors write a space as %20. Does the program know that?',
    ),
    shell(
      'd=$(mktemp -d) && touch "$d/my notes.md" && echo "[notes](my%20notes.md)" > "$d/page.md" && node bin/linkcheck.js "$d/page.md"; rm -r "$d"',
    ),
  ],
  () => [
    say('A real defect: the file is there, and the program says that it is not. First a test that shows it.'),
    updatePlan(planSteps(0, 'Test for percent-encoded names', 'Mend it', 'Run everything again')),
    patch(sources.update('test/check.test.js', 'test/check.test.encoded-names.patch')),
  ],
  () => [shell('node test/check.test.js')],
  () => [
    updatePlan(planSteps(1, 'Test for percent-encoded names', 'Mend it', 'Run everything again')),
    patch(sources.update('src/check.js', 'src/check.encoded-names.patch')),
  ],
  () => [
    updatePlan(planSteps(2, 'Test for percent-encoded names', 'Mend it', 'Run everything again')),
    shell('node --test && node bin/linkcheck.js README.md IDEA.md'),
  ],
  () => [
    updatePlan(planSteps(3, 'Test for percent-encoded names', 'Mend it', 'Run everything again')),
    shell('git add -A && git commit -qm "Understand percent-encoded names" && git status --short'),
  ],
  memory => [patch(sources.update(memory.tasks, 'codemachine/session/tasks.reviewed.patch'))],
  memory => [patch(sources.update(memory.main, 'codemachine/session/MAIN.reviewed.patch'))],
  () => [conclude('I found and mended one defect. Everything passes, so I call it finished.')],
]

/** The fifth round: the same review finds and changes nothing, and its done claim is accepted. */
const confirming: readonly DemoStep[] = [
  memory => [
    say('The last claim came from a round that changed files. I look again and touch nothing.'),
    shell(`cat ${memory.main} ${memory.tasks}; git log --oneline; git status --short`),
  ],
  () => [shell('node --test')],
  () => [
    think(
      '**Sentence by sentence**\n\nThe goal asks for files, headings, line numbers, an exit code, tests and a README. I try each from the outside.',
    ),
    shell('node bin/linkcheck.js README.md IDEA.md; echo "exit code $?"; node bin/linkcheck.js; echo "exit code $?"'),
  ],
  () => [
    say('Last, whether tests were skipped, and whether the tree is as it was.'),
    shell('grep -rnE "skip|only|todo" test; git status --short; git diff --stat'),
  ],
  memory => [patch(claimDone(memory))],
  () => [conclude('I looked at the whole and changed nothing: all tests pass, and each part of the goal is there.')],
]

/** The rounds of the demo, each a conversation of its own. */
const demoRounds: readonly (readonly DemoStep[])[] = [planning, building, finishing, reviewing, confirming]

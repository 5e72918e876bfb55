import { cost } from './cost.ts'
import { type Figure, formatFigures, isMet, loadNow } from './figure.ts'
import { fleet } from './fleet.ts'
import { gap } from './gap.ts'
import { indicators } from './indicators.ts'
import { journal } from './journal.ts'
import { largeRepository } from './large-repository.ts'
import { liars } from './liars.ts'
import { agents, prompts, tasks } from './many.ts'
import { memory } from './memory.ts'
import { notifications } from './notifications.ts'
import { oneRound } from './one-round.ts'
import { prove } from './prove.ts'
import { rounds } from './rounds.ts'
import { screen } from './screen.ts'
import { soak } from './soak.ts'
import { startup } from './startup.ts'
import { web } from './web.ts'

const BENCHES: Record<string, () => Promise<Figure[]>> = {
  startup,
  'one-round': oneRound,
  rounds,
  gap,
  cost,
  notifications,
  memory,
  large: largeRepository,
  screen,
  tasks,
  prompts,
  agents,
  journal,
  web,
  fleet,
  indicators,
  prove,
  soak,
}

/**
 * `node bench/run.ts [name …]`: measures, prints, and exits with 1 if a target is missed. `node bench/run.ts liars …` is another
 * program: it has no targets.
 */
const wanted = process.argv.slice(2)
if (wanted[0] === 'liars') {
  await liars(wanted.slice(1))
  process.exit()
}
const unknown = wanted.filter(name => !Object.hasOwn(BENCHES, name))
if (unknown.length > 0) {
  process.stderr.write(
    `No such benchmark: ${unknown.join(', ')}. There are ${[...Object.keys(BENCHES), 'liars'].join(', ')}.\n`,
  )
  process.exit(2)
}

const startedAt = performance.now()
process.stdout.write(`Node ${process.versions.node}\n\n`)
let met = true
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const [before, from] = [loadNow(), performance.now()]
  const figures = await bench()
  const took = `${name.padEnd(14)}took ${secondsSince(from)} s; load average ${before} before, ${loadNow()} after`
  process.stdout.write(`${formatFigures(name, figures)}${took}\n\n`)
  met &&= figures.every(isMet)
}
process.stdout.write(`${met ? 'Every target is met.' : 'A target is missed.'} Took ${secondsSince(startedAt)} s.\n`)
process.exitCode = met ? 0 : 1

function secondsSince(from: number): number {
  return Math.round((performance.now() - from) / 1000)
}

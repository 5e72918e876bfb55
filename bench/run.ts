import { loadavg } from 'node:os'
import { formatFigures, isMet } from './figure.ts'
import { gap } from './gap.ts'
import { memory } from './memory.ts'
import { notifications } from './notifications.ts'
import { report } from './report.ts'
import { rounds } from './rounds.ts'
import { savepoint } from './savepoint.ts'
import { screen } from './screen.ts'
import { soak } from './soak.ts'
import { startup } from './startup.ts'

const BENCHES = { startup, notifications, memory, rounds, gap, savepoint, screen, report, soak }

/** `node bench/run.ts [name …]`: measures, prints, and exits with 1 if a target is missed. */
const wanted = process.argv.slice(2)
const unknown = wanted.filter(name => !Object.hasOwn(BENCHES, name))
if (unknown.length > 0) {
  process.stderr.write(`No such benchmark: ${unknown.join(', ')}. There are ${Object.keys(BENCHES).join(', ')}.\n`)
  process.exit(2)
}

const startedAt = performance.now()
process.stdout.write(`Node ${process.versions.node}, load average ${loadavg()[0]?.toFixed(2)}\n\n`)
let met = true
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const figures = await bench()
  process.stdout.write(`${formatFigures(name, figures)}\n`)
  met &&= figures.every(isMet)
}
process.stdout.write(
  `${met ? 'Every target is met.' : 'A target is missed.'} Took ${Math.round((performance.now() - startedAt) / 1000)} s, load average ${loadavg()[0]?.toFixed(2)}.\n`,
)
process.exitCode = met ? 0 : 1

import { Box, Text } from 'ink'

/** Finished lines, a row of its own each, for Ink to write only those that have changed. */
export function Rows({ lines }: { lines: readonly string[] }) {
  // One without text would have no height.
  const rows = lines.map((line, row) => ({ row, text: line === '' ? ' ' : line }))
  return (
    <Box flexDirection="column">
      {rows.map(({ row, text }) => (
        <Text key={row} wrap="truncate">
          {text}
        </Text>
      ))}
    </Box>
  )
}

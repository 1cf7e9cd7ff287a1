# The reference design on the real BEAM: a conversation as a GenServer over a public ordered_set ETS table, with an
# optional Task per frame that writes one compressed term to a file of its own. Fork and goto walk the whole stack, as
# there. It reads one command a line from stdin and answers one line, so that another program can take turns with it.
#
#   measure MODE OP DEPTH BATCHES BATCH SINGLES   -> ok N P50_NS MEAN_NS P99_NS
#   lose N                                        -> ok N            (N frames pushed in mode disk; kill us now)
#   recover SESSIONS FRAMES                       -> ok FOUND NS     (all sessions read back from their files)
#
# MODE is none (list only), ets (list and table) or disk (list, table, Task). The first argument is a directory.

defmodule Reference.Stack do
  use GenServer

  defstruct [:table, :directory, :mode, :saved, stack: [], checkpoints: %{}, current_frame_id: 0]

  def start_link(mode, directory), do: GenServer.start_link(__MODULE__, {mode, directory}, name: mode)

  @impl true
  def init({mode, directory}) do
    File.mkdir_p!(directory)
    table = :ets.new(:frames, [:ordered_set, :public])
    {:ok, %__MODULE__{table: table, directory: directory, mode: mode}}
  end

  @impl true
  def handle_call({:push, data}, _from, state) do
    frame = frame(state, data, data.assistant_output)
    keep(state, frame)
    {:reply, {:ok, frame}, %{state | stack: [frame | state.stack], current_frame_id: frame.id}}
  end

  def handle_call({:pop, count}, _from, state) do
    {popped, remaining} = Enum.split(state.stack, count)
    if state.mode != :none, do: Enum.each(popped, &:ets.delete(state.table, &1.id))
    {:reply, {:ok, popped}, %{state | stack: remaining}}
  end

  def handle_call({:fork, frame_id, data}, _from, state) do
    fork_stack = up_to(state.stack, frame_id)
    frame = state |> frame(data, "Branch from frame #{frame_id}") |> Map.put(:forked_from, frame_id)
    keep(state, frame)
    {:reply, {:ok, frame}, %{state | stack: [frame | fork_stack], current_frame_id: frame.id}}
  end

  def handle_call({:checkpoint, name}, _from, state) do
    checkpoints = Map.put(state.checkpoints, name, state.current_frame_id)
    {:reply, :ok, %{state | checkpoints: checkpoints}}
  end

  def handle_call({:goto, frame_id}, _from, state) do
    {:reply, :ok, %{state | stack: up_to(state.stack, frame_id)}}
  end

  def handle_call({:get, frame_id}, _from, state) do
    case :ets.lookup(state.table, frame_id) do
      [{_, frame}] -> {:reply, {:ok, frame}, state}
      [] -> {:reply, {:error, :not_found}, state}
    end
  end

  def handle_call(:get_stack, _from, state), do: {:reply, state.stack, state}
  def handle_call(:echo, _from, state), do: {:reply, :echo, state}
  def handle_call(:table, _from, state), do: {:reply, state.table, state}
  def handle_call(:save, _from, state), do: {:reply, :ok, %{state | saved: {state.stack, state.current_frame_id}}}

  # Back to the saved stack, untimed, so that every batch meets the same depth.
  def handle_call(:restore, _from, %{saved: {stack, id}} = state) do
    for gone <- (id + 1)..state.current_frame_id//1, do: :ets.delete(state.table, gone)
    if state.mode != :none, do: Enum.each(Enum.take(stack, 2000), &:ets.insert(state.table, {&1.id, &1}))
    {:reply, :ok, %{state | stack: stack, current_frame_id: id, checkpoints: %{}}}
  end

  defp up_to(stack, frame_id), do: stack |> Enum.reverse() |> Enum.take_while(&(&1.id <= frame_id))

  defp frame(state, data, output) do
    %{
      id: state.current_frame_id + 1,
      user_input: data.user_input,
      assistant_output: output,
      assumptions: data.assumptions,
      decisions: data.decisions,
      timestamp: DateTime.utc_now(),
      immutable: true
    }
  end

  defp keep(%{mode: :none}, _frame), do: :ok
  defp keep(%{mode: :ets} = state, frame), do: :ets.insert(state.table, {frame.id, frame})

  defp keep(%{mode: :disk} = state, frame) do
    :ets.insert(state.table, {frame.id, frame})
    directory = state.directory
    Task.start(fn -> Reference.Disk.write(directory, frame) end)
  end
end

defmodule Reference.Disk do
  def write(directory, frame) do
    File.write!(Path.join(directory, "frame_#{frame.id}.bin"), :erlang.term_to_binary(frame, [:compressed]))
  end

  def recover(directory) do
    table = :ets.new(:recovered, [:ordered_set, :public])

    frames =
      directory
      |> File.ls!()
      |> Enum.filter(&String.ends_with?(&1, ".bin"))
      |> Enum.map(&(directory |> Path.join(&1) |> File.read!() |> :erlang.binary_to_term()))
      |> Enum.sort_by(& &1.id)

    Enum.each(frames, &:ets.insert(table, {&1.id, &1}))
    length(Enum.reverse(frames))
  end
end

defmodule Reference.Bench do
  @data %{
    user_input: "How do I keep a conversation when the process dies?",
    assistant_output: "Write every change to a log before the next one, and replay the log at the start.",
    assumptions: ["one process per store"],
    decisions: ["append only"]
  }

  def loop(directory) do
    case IO.gets("") do
      line when is_binary(line) ->
        line |> String.split() |> command(directory) |> Enum.join(" ") |> IO.puts()
        loop(directory)

      _ ->
        :ok
    end
  end

  defp command(["measure", mode, op, depth, batches, batch, singles], directory) do
    [depth, batches, batch, singles] = Enum.map([depth, batches, batch, singles], &String.to_integer/1)
    mode = String.to_atom(mode)
    path = Path.join(directory, "measure")
    {:ok, server} = Reference.Stack.start_link(mode, path)
    for _ <- 1..depth//1, do: GenServer.call(mode, {:push, @data})
    :ok = GenServer.call(mode, :save)
    call = operation(op, mode, depth)
    task = Task.async(fn -> sample(call, mode, batches, batch, singles) end)
    answer = Task.await(task, :infinity)
    GenServer.stop(server)
    File.rm_rf!(path)
    ["ok" | answer]
  end

  defp command(["lose", count], directory) do
    count = String.to_integer(count)
    {:ok, _} = Reference.Stack.start_link(:disk, Path.join(directory, "lose"))
    for _ <- 1..count, do: {:ok, _} = GenServer.call(:disk, {:push, @data})
    ["ok", count]
  end

  defp command(["recover", sessions, frames], directory) do
    paths = for n <- 1..String.to_integer(sessions), do: Path.join(directory, "recover-#{n}")
    Enum.each(paths, &fill(&1, String.to_integer(frames)))
    start = System.monotonic_time(:nanosecond)
    found = paths |> Enum.map(&Reference.Disk.recover/1) |> Enum.sum()
    spent = System.monotonic_time(:nanosecond) - start
    Enum.each(paths, &File.rm_rf!/1)
    ["ok", found, spent]
  end

  defp fill(path, frames) do
    File.mkdir_p!(path)
    for id <- 1..frames, do: Reference.Disk.write(path, Map.merge(@data, %{id: id, timestamp: DateTime.utc_now()}))
  end

  defp operation("echo", mode, _), do: fn -> GenServer.call(mode, :echo) end
  defp operation("push", mode, _), do: fn -> GenServer.call(mode, {:push, @data}) end
  defp operation("pop1", mode, _), do: fn -> GenServer.call(mode, {:pop, 1}) end
  defp operation("pop10", mode, _), do: fn -> GenServer.call(mode, {:pop, 10}) end
  defp operation("fork", mode, depth), do: fn -> GenServer.call(mode, {:fork, depth, @data}) end
  defp operation("fork_first", mode, _), do: fn -> GenServer.call(mode, {:fork, 1, @data}) end
  defp operation("checkpoint", mode, _), do: fn -> GenServer.call(mode, {:checkpoint, "before"}) end
  defp operation("goto", mode, depth), do: fn -> GenServer.call(mode, {:goto, depth}) end
  defp operation("goto_first", mode, _), do: fn -> GenServer.call(mode, {:goto, 1}) end
  defp operation("get_call", mode, depth), do: fn -> GenServer.call(mode, {:get, depth}) end
  defp operation("get_stack", mode, _), do: fn -> GenServer.call(mode, :get_stack) end

  defp operation("get_table", mode, depth) do
    table = GenServer.call(mode, :table)
    fn -> :ets.lookup(table, depth) end
  end

  defp sample(call, mode, batches, batch, singles) do
    repeat(call, batch)
    GenServer.call(mode, :restore)

    means =
      for _ <- 1..batches do
        start = System.monotonic_time(:nanosecond)
        repeat(call, batch)
        spent = System.monotonic_time(:nanosecond) - start
        GenServer.call(mode, :restore, :infinity)
        spent / batch
      end

    each = for _ <- 1..singles, do: single(call, mode)
    n = batches * batch
    [n, middle(means), Enum.sum(means) / batches, Enum.at(Enum.sort(each), div(singles * 99, 100))]
  end

  defp single(call, mode) do
    start = System.monotonic_time(:nanosecond)
    call.()
    spent = System.monotonic_time(:nanosecond) - start
    GenServer.call(mode, :restore, :infinity)
    spent
  end

  defp repeat(_call, 0), do: :ok

  defp repeat(call, n) do
    call.()
    repeat(call, n - 1)
  end

  defp middle(values), do: Enum.at(Enum.sort(values), div(length(values), 2))
end

[directory] = System.argv()
IO.puts("ready #{System.pid()}")
Reference.Bench.loop(directory)

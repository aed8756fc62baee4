// A small machine: registers, an adder, shifts, a multiplier and a queue.
module alu(input [2:0] op, input [31:0] a, input [31:0] b, output reg [31:0] y);
  always @* case (op)
    0: y = a + b;
    1: y = a - b;
    2: y = a & b;
    3: y = a | b;
    4: y = a ^ b;
    5: y = a << b[4:0];
    6: y = a >> b[4:0];
    7: y = {31'b0, $signed(a) < $signed(b)};
  endcase
endmodule

module queue(input clk, input reset, input push, input pop, input [31:0] in, output [31:0] out,
             output empty);
  reg [31:0] slots [0:15];
  reg [4:0] head, tail;
  assign out = slots[head[3:0]];
  assign empty = head == tail;
  always @(posedge clk) begin
    if (reset) begin head <= 0; tail <= 0; end
    else begin
      if (push) begin slots[tail[3:0]] <= in; tail <= tail + 1; end
      if (pop && !empty) head <= head + 1;
    end
  end
endmodule

module machine(input clk, input reset, input [15:0] word, output [31:0] result, output empty);
  reg [31:0] registers [0:7];
  wire [31:0] a = registers[word[5:3]], b = registers[word[8:6]], y;
  reg [31:0] product;
  alu alu0(.op(word[2:0]), .a(a), .b(b), .y(y));
  queue queue0(.clk(clk), .reset(reset), .push(word[15]), .pop(word[14]), .in(product),
               .out(result), .empty(empty));
  always @(posedge clk) begin
    product <= a[15:0] * b[15:0];
    if (word[13]) registers[word[11:9]] <= word[12] ? product : y;
    else if (reset) registers[0] <= {16'b0, word};
  end
endmodule
